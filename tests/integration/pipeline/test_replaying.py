"""A lake's rows go to a topic again as they were, each once, whatever is killed; and not where they would be lost."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.client import TopicPartition
from kavka.client.producer.murmur2 import murmur2
from kavka.pipeline.sending.replaying import Replayed, backfill, replay
from kavka.pipeline.sending.steps import BEGUN, COMMITTED, FENCED, MARKED, SENT
from kavka.pipeline.sending.target_checks import TargetError
from kavka.testing import Broker
from kavka.testing.rows import Row
from tests.support.dying_writer import FIRST_MS
from tests.support.processes import Process
from tests.support.sample_lake import TOPIC, replay_of, sample_lake

LONG_S = 300.0
BATCHES = [range(10, 25), range(25, 26), range(40, 60)]
KEPT_FOREVER = {"retention.ms": "-1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    path = tmp_path_factory.mktemp("lake")
    return path, sample_lake(path, BATCHES)


def shown(broker: Broker, topic: str) -> list[tuple[object, ...]]:
    """What readers of committed records have, in the order of partitions and offsets."""
    found = broker.records(topic, committed=True)
    return [(each.partition, each.timestamp_ms, each.key, each.value, each.headers) for each in found]


def expected(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [
        (
            row["partition"],
            row["timestamp"] // 1000,
            row["key"],
            row["value"],
            tuple((each["key"], each["value"]) for each in row["headers"] or ()),
        )
        for row in rows
    ]


def test_rows_keep_order_partitions_times_and_headers_and_go_once(
    broker: Broker, lake: tuple[Path, list[dict[str, Any]]]
) -> None:
    path, rows = lake
    target = broker.create_topic("again", 2, configs=KEPT_FOREVER)
    heard: list[Replayed] = []
    done = replay(replay_of(broker.bootstrap_servers, path, target), heard.append)
    assert done == Replayed(len(rows), {0: 60, 1: 60}) == heard[-1]
    assert shown(broker, target) == expected(rows)
    assert replay(replay_of(broker.bootstrap_servers, path, target)) == Replayed(0, {0: 60, 1: 60})
    # Partitions take turns, as their rows did.
    assert [sorted(each.positions.values()) for each in heard[:2]] == [[0, 17], [17, 17]]


def test_a_range_of_time_is_replayed_by_keys_at_a_rate(broker: Broker, lake: tuple[Path, list[dict[str, Any]]]) -> None:
    path, rows = lake
    target = broker.create_topic("by-key", 3, configs=KEPT_FOREVER)
    wanted = replay_of(broker.bootstrap_servers, path, target, "by-key")._replace(
        partitions="key", from_ms=FIRST_MS + 20_000, to_ms=FIRST_MS + 45_000, rows_per_second=2000
    )
    began = time.monotonic()
    done = replay(wanted)
    chosen = [row for row in rows if 20 <= row["offset"] < 45]
    assert done.rows == len(chosen)
    assert time.monotonic() - began >= len(chosen) / 2000
    found = broker.records(target, committed=True)
    assert sorted(each.timestamp_ms for each in found) == sorted(row["timestamp"] // 1000 for row in chosen)
    assert all(each.partition == (murmur2(each.key) & 0x7FFF_FFFF) % 3 for each in found if each.key is not None)


def test_a_backfill_ends_where_the_log_begins(broker: Broker, lake: tuple[Path, list[dict[str, Any]]]) -> None:
    path, rows = lake
    broker.create_topic(TOPIC, 2)
    broker.produce(TOPIC, [Row("v", partition=number % 2) for number in range(60)])
    limits = {0: 20, 1: 30}
    broker.admin.delete_records({TopicPartition(TOPIC, each): offset for each, offset in limits.items()})
    target = broker.create_topic("filled", 2, configs=KEPT_FOREVER)
    backfill(replay_of(broker.bootstrap_servers, path, target, "filled"))
    before = [row for row in rows if row["offset"] < limits[row["partition"]]]
    assert len(before) == 10 + 16
    assert shown(broker, target) == expected(before)


def test_records_may_have_times_that_python_has_not(broker: Broker, tmp_path: Path) -> None:
    far_ms = 253_402_300_800_000
    rows = sample_lake(tmp_path, [range(3)], partitions=1, first_ms=far_ms)
    target = broker.create_topic("far", 1, configs={**KEPT_FOREVER, "message.timestamp.after.max.ms": str(2**63 - 1)})
    assert replay(replay_of(broker.bootstrap_servers, tmp_path, target, "far")).rows == 3
    assert shown(broker, target) == expected(rows)


@pytest.mark.parametrize(("step", "times"), [(FENCED, 2), (BEGUN, 3), (MARKED, 4), (COMMITTED, 5)])
def test_a_replay_killed_at_a_step_is_gone_on_with_exactly(
    broker: Broker, lake: tuple[Path, list[dict[str, Any]]], tmp_path: Path, step: str, times: int
) -> None:
    killed_and_gone_on_with(broker, lake, tmp_path, step, times)


@pytest.mark.soak
@pytest.mark.parametrize("times", range(1, 12))
@pytest.mark.parametrize("step", [FENCED, BEGUN, SENT, MARKED, COMMITTED])
def test_a_replay_killed_at_every_step_is_gone_on_with_exactly(
    broker: Broker, lake: tuple[Path, list[dict[str, Any]]], tmp_path: Path, step: str, times: int
) -> None:
    killed_and_gone_on_with(broker, lake, tmp_path, step, times)


def killed_and_gone_on_with(
    broker: Broker, lake: tuple[Path, list[dict[str, Any]]], directory: Path, step: str, times: int
) -> None:
    path, rows = lake
    target = broker.create_topic(f"{step}-{times}-{directory.name}", 2, configs=KEPT_FOREVER)
    name = f"replay-to-{target}"
    arguments = [broker.bootstrap_servers, str(path), target, name, step, str(times)]
    with Process([sys.executable, "-m", "tests.support.sample_lake", *arguments], directory / "replay.log") as dying:
        dying.wait(LONG_S)
        # A step that is done less often than that lets it end by itself.
        assert dying.exit_code in (-9, 0), dying.log_text()
    replay(replay_of(broker.bootstrap_servers, path, target, name))
    assert shown(broker, target) == expected(rows)


def test_what_would_lose_or_change_rows_is_said_before_the_first(
    broker: Broker, lake: tuple[Path, list[dict[str, Any]]]
) -> None:
    path, _ = lake
    a_day = "86400000"
    configs = {
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": a_day,
        "retention.ms": a_day,
    }
    target = broker.create_topic("unfit", 1, configs=configs)
    with pytest.raises(TargetError) as error:
        replay(replay_of(broker.bootstrap_servers, path, target, "unfit"))
    for part in ("LogAppendTime", "before.max.ms", "retention.ms", "has 1 partitions"):
        assert part in str(error.value)
    assert not broker.records(target)
    with pytest.raises(TargetError, match="there is no topic 'nowhere': create it, with 2 partitions"):
        replay(replay_of(broker.bootstrap_servers, path, "nowhere", "unfit"))


def test_a_replay_that_goes_on_otherwise_is_refused(broker: Broker, lake: tuple[Path, list[dict[str, Any]]]) -> None:
    path, _ = lake
    target = broker.create_topic("otherwise", 2, configs=KEPT_FOREVER)
    replay(replay_of(broker.bootstrap_servers, path, target, "otherwise"))
    with pytest.raises(TargetError, match="give it another name"):
        replay(replay_of(broker.bootstrap_servers, path, target, "otherwise")._replace(partitions="key"))
