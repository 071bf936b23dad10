"""A replica that lost its records with a disk may lead again when it has come to where its leader's log ended, if that
was asked for after the leader took a fetch from its end.
"""

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from kavka.broker.replication.fetch_requests import FetchLimits
from kavka.broker.replication.followed_partitions import Key
from kavka.broker.replication.leader_port import LATEST
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse
from kavka.storage import unproven_mark
from tests.support import replicas as replicas_module
from tests.support.replicas import DirectLeader, Replicas

LEADER, LOST, THIRD = 1, 2, 3


def doubt(replicas: Replicas, index: int = 0) -> None:
    """Have the log of one broker's partition be what was made in place of a lost one."""
    log = replicas.log(LOST, index)
    unproven_mark.put(log.folder, log.files)
    log.is_unproven = True
    # It is followed as such from the next order on.
    replicas.elect(LEADER, index)


def is_unproven(replicas: Replicas, index: int = 0) -> bool:
    log = replicas.log(LOST, index)
    assert log.is_unproven is Path(log.folder, unproven_mark.FILE_NAME).exists()
    return log.is_unproven


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    made = Replicas(tmp_path)
    made.elect(LEADER)
    for number in range(5):
        made.produce(LEADER, b"%d" % number)
    doubt(made)
    return made


def way(replicas: Replicas) -> DirectLeader:
    return replicas.leaders[LOST, LEADER]


def refuse_ends(replicas: Replicas, monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> list[int]:
    """Have the leader not say where its log ends. How often it was asked."""
    asked = []

    def offsets(epochs: Mapping[Key, int], timestamp: int) -> Mapping[Key, tuple[ErrorCode, int]]:
        asked.append(timestamp)
        return dict.fromkeys(epochs, (code, -1))

    monkeypatch.setattr(way(replicas), "offsets", offsets)
    return asked


def test_who_has_come_to_the_leaders_end_has_all(replicas: Replicas) -> None:
    replicas.step(LOST)

    assert replicas.log(LOST).log_end_offset == 5
    assert not is_unproven(replicas)
    replicas.close()


@pytest.mark.parametrize("fetchers", [1, 2])
def test_an_answer_that_was_full_before_a_partition_had_its_turn_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fetchers: int
) -> None:
    limits = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=1000, partition_max_bytes=1 << 20)
    monkeypatch.setattr(replicas_module, "LIMITS", limits)
    replicas = Replicas(tmp_path, partitions=8, fetchers=fetchers)
    for index in range(8):
        replicas.elect(LEADER, index)
        for _ in range(3):
            replicas.produce(LEADER, b"x" * 1500, index=index)
        doubt(replicas, index)
    proven: set[int] = set()
    for _ in range(60):
        replicas.step(LOST)
        for index in range(8):
            if not is_unproven(replicas, index):
                assert replicas.log(LOST, index).log_end_offset == 3
                proven.add(index)

    assert proven == set(range(8))
    replicas.close()


def test_an_answer_without_records_proves_nothing(replicas: Replicas) -> None:
    def without_records(answer: FetchResponse) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                part.records = b""

    way(replicas).tamper = without_records
    for _ in range(4):
        replicas.step(LOST)
        assert is_unproven(replicas)
    way(replicas).tamper = lambda answer: None
    replicas.step(LOST)
    assert not is_unproven(replicas)
    replicas.close()


def test_under_load_what_there_was_when_it_was_asked_is_enough(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_batch = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=10 << 20, partition_max_bytes=1)
    monkeypatch.setattr(replicas_module, "LIMITS", one_batch)
    for copied in range(1, 9):
        replicas.step(LOST)
        assert replicas.log(LOST).log_end_offset == copied
        assert is_unproven(replicas) is (copied < 5)
        replicas.produce(LEADER, b"more")
    assert replicas.log(LEADER).log_end_offset == 13
    replicas.close()


def test_an_empty_leader_proves_an_empty_log(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(LEADER)
    doubt(replicas)

    replicas.step(LOST)

    assert not is_unproven(replicas)
    replicas.close()


def test_who_was_caught_up_before_the_doubt_is_asked_all_the_same(tmp_path: Path) -> None:
    """The leader's session has nothing to tell of it: it is told to begin anew."""
    replicas = Replicas(tmp_path, partitions=2)
    for index in (0, 1):
        replicas.elect(LEADER, index)
        replicas.produce(LEADER, b"kept", index=index)
    replicas.catch_up([LOST])

    doubt(replicas, 1)
    replicas.step(LOST)

    assert not is_unproven(replicas, 1)
    replicas.close()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_leader_that_does_not_say_is_asked_again_after_a_while(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    asked = refuse_ends(replicas, monkeypatch, code)
    for _ in range(5):
        replicas.step(LOST)
    assert asked == [LATEST]
    replicas.now_ms += 1000
    replicas.step(LOST)
    assert asked == [LATEST, LATEST]
    assert is_unproven(replicas)
    monkeypatch.undo()

    replicas.now_ms += 1000
    replicas.step(LOST)

    assert not is_unproven(replicas)
    replicas.close()


def test_an_end_of_an_epoch_that_is_over_proves_nothing(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_ends(replicas, monkeypatch, ErrorCode.UNKNOWN_SERVER_ERROR)
    replicas.step(LOST)
    partition = replicas.cores[LOST].replicas.partitions[Replicas.TOPIC, 0]

    partition.note_caught_up(partition.role.leader_epoch - 1)

    assert is_unproven(replicas)
    replicas.close()


def test_another_history_of_the_same_length_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied from one leader is no proof under the next, however long it is."""
    replicas = Replicas(tmp_path, count=3)
    replicas.elect(LEADER)
    for number in range(3):
        replicas.produce(LEADER, b"%d" % number)
    replicas.catch_up()
    for _ in range(4):
        replicas.produce(LEADER, b"only here")
    doubt_at = replicas.log(LOST)
    unproven_mark.put(doubt_at.folder, doubt_at.files)
    doubt_at.is_unproven = True
    replicas.down.add(LEADER)
    replicas.epochs[0] += 1
    replicas.order(LOST, LEADER, 0, replicas.epochs[0])
    replicas.down.clear()
    replicas.order(LEADER, LEADER, 0, replicas.epochs[0])
    monkeypatch.setattr(way(replicas), "offsets", lambda epochs, timestamp: {})
    replicas.step(LOST)
    assert (doubt_at.log_end_offset, is_unproven(replicas)) == (7, True)

    replicas.elect(THIRD, tell=[LOST, THIRD])
    for _ in range(2):
        replicas.produce(THIRD, b"of another history")
    ends = []
    for _ in range(6):
        replicas.now_ms += 1000
        replicas.step(LOST)
        ends.append((doubt_at.log_end_offset, is_unproven(replicas)))

    assert ends[0] == (3, True), ends
    assert ends[-1] == (5, False)
    assert replicas.contents(LOST) == replicas.contents(THIRD)
    replicas.close()


def test_a_disk_that_can_not_note_it_is_asked_again(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unproven_mark, "remove", _refused)
    replicas.step(LOST)
    assert is_unproven(replicas)

    monkeypatch.undo()
    replicas.step(LOST)

    assert not is_unproven(replicas)
    replicas.close()


def _refused(folder: object, files: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")
