"""How the oldest unread records are found: one batch a partition, and no more than is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kavka.cli.groups.unread import NOT_YET, Unread, UnreadTimestamps
from kavka.client.api_errors import TopicAuthorizationError
from kavka.client.topic_partition import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class FakeRecord:
    def __init__(self, timestamp_ms: int) -> None:
        self.timestamp_ms = timestamp_ms


class FakeConsumer:
    """Has records at even offsets below 10, each made at its offset, a thousand times; then marks up to 20."""

    made: list[FakeConsumer]
    refuses = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.at: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.sought: list[tuple[TopicPartition, int]] = []
        self.is_closed = False
        self.made.append(self)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.at = dict.fromkeys(partitions, 0)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append((partition, offset))
        self.at[partition] = offset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def poll(self, _timeout_ms: float) -> Any:
        if self.refuses:
            raise TopicAuthorizationError("not yours")
        found = {
            partition: [FakeRecord(offset * 1000) for offset in range(start, 10) if offset % 2 == 0]
            for partition, start in self.at.items()
            if partition not in self.paused
        }
        self.at = {partition: 20 if partition in found else start for partition, start in self.at.items()}

        class Records:
            def by_partition(self) -> Any:
                return {partition: records for partition, records in found.items() if records}

        return Records()

    def position(self, partition: TopicPartition, _timeout_ms: float) -> int:
        return self.at[partition]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[FakeConsumer]:
    made: list[FakeConsumer] = []
    fake = type("Fake", (FakeConsumer,), {"made": made})
    monkeypatch.setattr("kavka.client.consumer.consumer.Consumer", fake)
    return made


def test_the_first_record_from_there_on_counts_also_for_several_groups(consumers: list[FakeConsumer]) -> None:
    early, late, other = Unread(P0, 1, 10), Unread(P0, 6, 10), Unread(P1, 3, 10)
    with UnreadTimestamps({"bootstrap.servers": "b:1", "group.id": "mine"}, 5_000) as unread:
        assert dict(unread.look([early, late, other])) == {early: 2_000, late: 6_000, other: 4_000}
    (consumer,) = consumers
    assert consumer.is_closed
    assert "group.id" not in consumer.settings
    assert consumer.settings["enable.auto.commit"] == "false"


def test_what_is_known_is_not_read_again_until_the_group_goes_on(consumers: list[FakeConsumer]) -> None:
    with UnreadTimestamps({}, 5_000) as unread:
        unread.look([Unread(P0, 1, 10)])
        assert dict(unread.look([Unread(P0, 1, 12)])) == {Unread(P0, 1, 12): 2_000}
        assert consumers[0].sought == [(P0, 1)]
        unread.look([Unread(P0, 3, 12)])
        assert consumers[0].sought == [(P0, 1), (P0, 3)]


def test_marks_alone_are_no_records_until_there_are_some(consumers: list[FakeConsumer]) -> None:
    with UnreadTimestamps({}, 5_000) as unread:
        assert unread.look([Unread(P0, 11, 20)])[Unread(P0, 11, 20)] == NOT_YET
        unread.look([Unread(P0, 11, 20)])
        assert len(consumers[0].sought) == 1
        unread.look([Unread(P0, 11, 21)])
        assert len(consumers[0].sought) == 2, "what came since may be a record"


def test_nothing_unread_asks_nobody(consumers: list[FakeConsumer]) -> None:
    with UnreadTimestamps({}, None) as unread:
        assert unread.look([]) == {}
    assert consumers == []


def test_topics_that_may_not_be_read_are_said_once(
    consumers: list[FakeConsumer], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeConsumer, "refuses", True)
    with UnreadTimestamps({}, 5_000) as unread:
        assert unread.look([Unread(P0, 1, 10)]) == unread.look([Unread(P0, 1, 11)]) == {}
    assert capsys.readouterr().err == "lag in seconds is not known: not yours\n"
