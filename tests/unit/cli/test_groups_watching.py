"""`kavka groups watch`: how fast groups consume, and what becomes of failures between two updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from unittest.mock import MagicMock

import pytest

from kavka.cli.groups.unread import Unread, UnreadTimestamps
from kavka.cli.groups.watching import Watch
from kavka.cli.main import main
from kavka.client.admin import GroupState
from kavka.client.api_errors import GroupIdNotFoundError
from kavka.client.kafka_error import KafkaTimeoutError
from tests.support.described_groups import HISTORY, NOW_MS, P0, P1, group_of, info, member, stored


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The monotonic time in milliseconds, which the test moves."""
    now_ms = [1_000]
    monkeypatch.setattr("time.monotonic_ns", lambda: now_ms[0] * 1_000_000)
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    return now_ms


def look(unread: Iterable[Unread]) -> Mapping[Unread, int]:
    return {each: NOW_MS - each.offset * 1_000 for each in unread}


@pytest.fixture
def billing(admin: MagicMock, monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    monkeypatch.setattr(UnreadTimestamps, "look", lambda _self, unread: look(unread))
    admin.describe_consumer_groups.return_value = {"billing": group_of("billing", member("a", P0, P1), history=HISTORY)}
    admin.list_group_offsets.return_value = {"billing": stored(p0=5, p1=3)}
    admin.list_offsets.return_value = {P0: info(10), P1: info(10)}
    return admin


def test_a_row_tells_lag_of_all_partitions_and_how_fast_it_goes(billing: MagicMock, clock: list[int]) -> None:
    watch = Watch(billing, lambda: ["billing"], look)
    (row,) = watch.update().rows
    assert (row.topic, row.lag, row.lag_seconds, row.consumed_per_s) == ("orders", 12, 5, None)
    clock[0] += 500
    billing.list_group_offsets.return_value = {"billing": stored(p0=8, p1=5)}
    (row,) = watch.update().rows
    assert (row.lag, row.lag_seconds, row.consumed_per_s) == (7, 8, 10)


def test_a_group_without_offsets_has_a_row_too(admin: MagicMock) -> None:
    admin.describe_consumer_groups.return_value = {"idle": group_of("idle", state=GroupState.PREPARING_REBALANCE)}
    admin.list_group_offsets.return_value = {"idle": {}}
    (row,) = Watch(admin, lambda: ["idle"], look).update().rows
    assert (row.topic, row.lag, row.lag_seconds, row.group.is_settled) == (None, None, None, False)


def test_a_broker_that_is_away_for_a_while_does_not_end_it(
    billing: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    described = billing.describe_consumer_groups.return_value
    billing.describe_consumer_groups.side_effect = [described, KafkaTimeoutError("nobody answers"), described]
    assert main(["groups", "watch", "--group", "billing", "--interval-ms", "100", "--updates", "3"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert "  billing  Stable  members=1  topic=orders  lag=12  " in first
    assert first.endswith("last-rebalance=90 s ago: member b\\x1b is new")
    assert second.endswith("billing  nobody answers")
    assert "lag=12" in third


def test_what_fails_at_the_beginning_ends_it(billing: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    billing.describe_consumer_groups.side_effect = GroupIdNotFoundError("there is no such group")
    billing.list_groups.return_value = []
    assert main(["groups", "watch", "--group", "billing"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "kavka groups watch: billing: there is no such group\n")
    assert main(["groups", "watch", "--group", "billing", "--interval-ms", "1"]) == 2
    assert main(["groups", "watch", "--group", "billing", "--updates", "0"]) == 2
