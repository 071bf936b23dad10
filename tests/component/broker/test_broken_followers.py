"""Followers whose own logs are broken: one partition is given up, the others and the fetcher go on."""

from pathlib import Path

import pytest

from kavka.broker.replication import copying
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse
from kavka.storage.partition_log import PartitionLog
from tests.support.replicas import Replicas


def _break(log: PartitionLog, offset: int) -> None:
    """Have the length of the batch there be nonsense."""
    segment = log.published[2][-1]
    place = segment.find(offset, segment.size_bytes)
    assert place is not None
    with Path(segment.file.path).open("r+b") as file:
        file.seek(place.position + 8)
        file.write(b"\xff" * 4)
    segment.recent_positions = {}


def _pair(directory: Path, leader: int = 1) -> Replicas:
    replicas = Replicas(directory, partitions=2)
    for index in range(2):
        replicas.elect(leader, index)
        for _ in range(10):
            replicas.produce(leader, b"v", index=index)
    return replicas


def test_a_broken_log_that_is_out_of_its_leaders_range_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = _pair(tmp_path)
    replicas.catch_up([2])
    _break(replicas.log(2), 3)
    before = (replicas.contents(2), replicas.log(2).published)
    way = replicas.leaders[2, 1]

    def out_of_range(answer: FetchResponse) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                if part.partition_index == 0:
                    part.error_code, part.records = ErrorCode.OFFSET_OUT_OF_RANGE, b""

    way.tamper = out_of_range
    monkeypatch.setattr(way, "offsets", lambda epochs, timestamp: dict.fromkeys(epochs, (ErrorCode.NONE, 6)))
    for index in range(2):
        replicas.produce(1, b"more", index=index)
    replicas.catch_up([2], rounds=3)

    assert replicas.managers[2].failed == {(replicas.TOPIC, 0)}
    assert (replicas.contents(2), replicas.log(2).published) == before
    assert replicas.contents(2, 1) == replicas.contents(1, 1)
    replicas.close()


def test_a_broken_log_with_another_history_fails_alone(tmp_path: Path) -> None:
    replicas = _pair(tmp_path, leader=2)
    replicas.catch_up([1])
    for index in range(2):
        replicas.produce(2, b"never copied", index=index)
    _break(replicas.log(2), 9)

    for index in range(2):
        replicas.elect(1, index)
        replicas.produce(1, b"new", index=index)
    replicas.catch_up([2])

    assert replicas.managers[2].failed == {(replicas.TOPIC, 0)}
    assert replicas.log(2).log_end_offset == 11
    assert replicas.contents(2, 1) == replicas.contents(1, 1)
    replicas.close()


def test_whatever_a_first_cut_meets_ends_no_fetcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = _pair(tmp_path)

    def fails(_followed: object) -> copying.Outcome:
        raise ZeroDivisionError

    (fetcher,) = replicas.managers[2].fetchers
    monkeypatch.setattr(copying, "cut_to_high_watermark", fails)
    entries = fetcher.partitions.all()
    monkeypatch.setattr(fetcher.partitions, "truncating", lambda: [entries[0]] if len(fetcher.partitions) == 2 else [])
    replicas.catch_up([2])

    assert replicas.managers[2].failed == {entries[0].key}
    assert replicas.contents(2, entries[1].key[1]) == replicas.contents(1, entries[1].key[1])
    replicas.close()


def test_who_fetches_for_an_earlier_start_of_its_broker_gets_an_error_and_no_records(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"v")
    # Its fetches name the first epoch.
    replicas.cores[1].replicas.partitions[replicas.TOPIC, 0].followers[2].broker_epoch = 5
    answers: list[tuple[int, int]] = []

    def note(answer: FetchResponse) -> None:
        answers.extend(
            (part.error_code, len(part.records or b"")) for topic in answer.responses for part in topic.partitions
        )

    replicas.leaders[2, 1].tamper = note
    replicas.step(2)

    assert answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]
    assert replicas.log(2).log_end_offset == 0
    replicas.close()
