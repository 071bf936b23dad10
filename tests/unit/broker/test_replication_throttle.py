"""Replication's throttle: bytes a second over a window, of the replicas that are named (KIP-73)."""

from pathlib import Path
from typing import Any

import pytest

from kavka.broker.replication.throttle import ReplicationThrottle
from kavka.config.values import LONG_MAX
from tests.support.partition_logs import Clock, open_log

ME = 7
ALL: dict[str, Any] = {"follower_replication_throttled_replicas": "*"}


def throttle(clock: Clock, limit: int = 1000) -> ReplicationThrottle:
    return ReplicationThrottle(
        ME,
        lambda: limit,
        lambda config: config.follower_replication_throttled_replicas,
        window_num=3,
        window_size_ms=1000,
        now_ms=clock,
    )


@pytest.mark.parametrize(
    ("replicas", "concerned"), [("*", True), (f"0:{ME}", True), (f"1:{ME},0:8", False), ("", False)]
)
def test_the_replicas_are_named_by_partition_and_broker(tmp_path: Path, replicas: str, concerned: bool) -> None:
    log = open_log(tmp_path, follower_replication_throttled_replicas=replicas)

    assert throttle(Clock()).concerns(log) is concerned


def test_a_burst_is_exceeding_until_the_window_has_made_it_small(tmp_path: Path) -> None:
    clock = Clock()
    log, limited = open_log(tmp_path, **ALL), throttle(clock)

    limited.record(log, 2500)

    assert limited.is_exceeded()
    clock.ms += 2000
    assert limited.rate() == 1250
    assert limited.is_exceeded()
    clock.ms += 999
    assert not limited.is_exceeded()
    clock.ms += 1
    assert limited.rate() == 0


def test_samples_are_bounded_by_the_window(tmp_path: Path) -> None:
    clock = Clock()
    log, limited = open_log(tmp_path, **ALL), throttle(clock)
    for _ in range(1000):
        limited.record(log, 1)
        clock.ms += 100

    assert len(limited._samples) <= 3
    assert limited.rate() == pytest.approx(10, rel=0.2)


def test_without_a_limit_or_for_others_nothing_is_counted(tmp_path: Path) -> None:
    clock = Clock()
    unlimited = throttle(clock, LONG_MAX)
    unlimited.record(open_log(tmp_path / "a", **ALL), 10**9)
    limited = throttle(clock)
    limited.record(open_log(tmp_path / "b"), 10**9)

    assert not unlimited.is_limited
    assert unlimited.rate() == limited.rate() == 0
