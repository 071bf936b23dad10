"""The short way of offset commits: the same answers and the same log as by the ordinary way, whatever comes."""

import errno
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.requests import prepared_commit
from kavka.broker.requests.prepared_commit import PreparedCommits
from kavka.config.broker_config import BrokerConfig
from kavka.config.topic_config import TopicConfig
from kavka.coordinator.group.offsets.commit import COMMITS
from kavka.protocol.errors import ErrorCode
from tests.support.broker_handlers import topic_id_of
from tests.support.group_core import OFFSETS, GroupCore, commit_frame
from tests.support.log_managers import FailingFiles
from tests.support.prepared_ways import watch_short_ways

VERSIONS = range(2, 11)


class Pair:
    """Two brokers that are asked the same: one that prepares, and one that takes the ordinary way."""

    def __init__(self, directory: Path) -> None:
        self.short = GroupCore(directory / "short", inline=True)
        self.ordinary = GroupCore(directory / "ordinary", prepares=False)

    def ask(self, frame: bytes) -> bytes:
        answer = self.short.ask(frame)
        assert answer == self.ordinary.ask(frame)
        return answer

    def check_logs(self) -> None:
        assert self.short.log_bytes(OFFSETS, 0) == self.ordinary.log_bytes(OFFSETS, 0)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.short.close()
    made.ordinary.close()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, PreparedCommits)


@pytest.mark.parametrize("version", VERSIONS)
def test_repeated_commits_take_the_short_way_and_store_what_they_say(
    pair: Pair, short_ways: list[bool], version: int
) -> None:
    for number in range(6):
        pair.ask(commit_frame(version, number, [("visits", 0, number), ("visits", 2, 7 * number), ("other", 0, 1)]))

    # The first two are learnt from; before version 5 nothing is.
    assert short_ways[-4:] == [version >= 5] * 4
    pair.check_logs()
    stored = [core.services.groups.runtime.shards()[0].offsets.snapshot("g") for core in (pair.short, pair.ordinary)]
    assert sorted(stored[0]) == sorted(stored[1]) == [("other", 0, 1), ("visits", 0, 5), ("visits", 2, 35)]


def test_what_is_refused_or_looks_different_is_answered_as_ever(pair: Pair, short_ways: list[bool]) -> None:
    chance = random.Random(4)
    for number in range(400):
        version = chance.choice((8, 8, 8, 9))
        places = chance.choice(
            ([("visits", 0, number)], [("visits", 1, number)], [("nowhere", 0, number)], [("visits", 9, number)])
        )
        frame = commit_frame(
            version,
            number,
            places,
            metadata=chance.choice(("", "", "", "x" * 5000)),
            generation=chance.choice((-1, -1, -1, 3)),
            group=chance.choice(("g", "h")),
        )
        pair.ask(frame)

    assert {True, False} == set(short_ways)
    pair.check_logs()


def test_a_commit_that_a_full_disk_refuses_is_logged_once(
    tmp_path: Path, short_ways: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    files = FailingFiles()
    core = GroupCore(tmp_path, inline=True, files=files)
    for number in range(3):
        core.ask(commit_frame(8, number, [("visits", 0, number)]))
    assert short_ways == [False, True]

    files.fail("pwrite", "/__consumer_offsets-0/", errno.ENOSPC)
    refused = core.ask(commit_frame(8, 3, [("visits", 0, 3)]))

    assert refused[-5:-3] == ErrorCode.NOT_COORDINATOR.to_bytes(2, "big")
    assert short_ways == [False, True, False]
    assert caplog.text.count("an append failed partition=0") == 1
    core.close()


def test_a_shape_is_forgotten_when_its_topic_goes(pair: Pair, short_ways: list[bool]) -> None:
    for number in range(3):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))
    assert short_ways == [False, True]

    for core in (pair.short, pair.ordinary):
        core.forget("visits")
    refused = pair.ask(commit_frame(8, 3, [("visits", 0, 3)]))
    assert refused[-5:-3] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.to_bytes(2, "big")

    assert short_ways == [False, True, False]
    pair.check_logs()


def test_metadata_of_others_leave_a_shape_as_it_is(pair: Pair, short_ways: list[bool]) -> None:
    for number in range(3):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))

    for number in range(3, 6):
        for core in (pair.short, pair.ordinary):
            core.create(f"another-{number}")
            core.create("visits", 3, leader_epoch=number)
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))

    assert short_ways == [False, True, True, True, True]
    pair.check_logs()


def replicated(pair: Pair) -> None:
    for core in (pair.short, pair.ordinary):
        core.create(OFFSETS, leader_epoch=1, isr=(1, 2, 3))
        core.take_over()


def replicate(pair: Pair, *replicas: int) -> bytes:
    """These have all there is by now: what the client gets then."""
    before = [len(core.socket.taken) for core in (pair.short, pair.ordinary)]
    for core in (pair.short, pair.ordinary):
        for each in replicas:
            core.replicate(OFFSETS, each, core.log(OFFSETS).log_end_offset)
        core.stage.settle()
    short, ordinary = (
        bytes(core.socket.taken[size:]) for core, size in zip((pair.short, pair.ordinary), before, strict=True)
    )
    assert short == ordinary
    return short


@pytest.mark.parametrize("version", [5, 8, 10])
def test_commits_that_other_replicas_have_to_get_wait_for_them_on_the_short_way(
    pair: Pair, short_ways: list[bool], version: int
) -> None:
    replicated(pair)
    for number in range(5):
        assert pair.ask(commit_frame(version, number, [("visits", 0, number)])) == b""
    assert short_ways == [False, True, True, True]

    assert replicate(pair, 2) == b""
    assert replicate(pair, 3).count(b"visits" if version < 10 else topic_id_of("visits")) == 5
    assert pair.short.purgatory.size == 0
    pair.check_logs()


@pytest.mark.parametrize("end", ["late", "lost", "too few"])
def test_what_becomes_of_a_commit_that_waits_is_told_as_by_the_ordinary_way(
    pair: Pair, short_ways: list[bool], end: str
) -> None:
    replicated(pair)
    for number in range(3):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))
    assert short_ways[-1]
    for core in (pair.short, pair.ordinary):
        match end:
            case "late":
                core.purgatory.expire_all()
            case "lost":
                core.lose(OFFSETS, 2, ("other.example", 9092), leader_epoch=2)
            case _:
                core.rig.overrides[OFFSETS] = {"min.insync.replicas": "2"}
                core.rig.manager.update_topic_config(OFFSETS, core.rig.overrides[OFFSETS])
                core.shrink_isr(OFFSETS, (1,))
                core.replicate(OFFSETS, 2, core.log(OFFSETS).log_end_offset)
        core.stage.settle()

    assert pair.short.socket.taken == pair.ordinary.socket.taken
    code = ErrorCode.NOT_COORDINATOR if end == "lost" else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if end != "too few":
        assert pair.short.socket.taken[-5:-3] == code.to_bytes(2, "big")


@pytest.mark.parametrize(
    "setting",
    [{"max.message.bytes": "100"}, {"segment.bytes": "100"}, {"message.timestamp.type": "LogAppendTime"}],
    ids=lambda setting: next(iter(setting)),
)
def test_the_records_of_a_repeated_commit_obey_their_topic_all_the_same(
    pair: Pair, short_ways: list[bool], setting: dict[str, str]
) -> None:
    for number in range(3):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))
    for core in (pair.short, pair.ordinary):
        core.replicas.partitions[OFFSETS, 0].leader_log().configure(TopicConfig(BrokerConfig({}), setting))
    for number in range(3, 6):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))

    assert short_ways == [False, True, *[setting.get("message.timestamp.type") is not None] * 3]
    pair.check_logs()


def test_repeated_commits_are_counted_as_any(pair: Pair) -> None:
    for number in range(5):
        pair.ask(commit_frame(8, number, [("visits", 0, number), ("visits", 1, number)]))

    counted = [core.services.metrics.mine().events for core in (pair.short, pair.ordinary)]
    assert counted[0][COMMITS] == counted[1][COMMITS] == 10


def test_a_commit_that_must_be_flushed_is_not_flushed_by_the_thread_that_read_it_nor_written_twice(
    tmp_path: Path,
) -> None:
    left_to_others: list[Callable[[], None]] = []
    core = GroupCore(tmp_path, inline=True, execute=left_to_others.append)
    try:
        log = core.replicas.partitions[OFFSETS, 0].leader_log()
        for number in range(3):
            core.ask(commit_frame(8, number, [("visits", 0, number)]))

        log.configure(TopicConfig(BrokerConfig({}), {"flush.messages": "1"}))
        flushed = log.recovery_point
        assert core.ask(commit_frame(8, 3, [("visits", 0, 3)])) == b""
        assert (log.log_end_offset, log.recovery_point) == (4, flushed)
        (flush,) = left_to_others
        flush()
        assert log.recovery_point == 4
    finally:
        core.close()


def test_while_a_log_moves_to_another_directory_commits_are_left_by_the_network_thread(
    tmp_path: Path, short_ways: list[bool]
) -> None:
    """The log's lock may be held over fsyncs."""
    core = GroupCore(tmp_path, inline=True)
    moving: Any = core.services.logs.moves.moving
    try:
        for number in range(4):
            if number == 3:
                del short_ways[:]
                moving[OFFSETS, 0] = core.log(OFFSETS)
            core.ask(commit_frame(8, number, [("visits", 0, number)]))
        assert short_ways == [False, True]
        assert core.log(OFFSETS).log_end_offset == 4
    finally:
        moving.clear()
        core.close()


@pytest.mark.parametrize("version", [8, 10])
def test_a_topic_that_goes_while_its_commit_is_made_is_not_taken_for_there(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    pair.ask(commit_frame(version, 0, [("visits", 0, 0)]))
    for core in (pair.short, pair.ordinary):

        def went(*work: Any, core: GroupCore = core, run: Callable[..., None] = core.services.groups.run) -> None:
            run(*work)
            core.forget("visits")

        monkeypatch.setattr(core.services.groups, "run", went)
    pair.ask(commit_frame(version, 1, [("visits", 0, 1)]))
    monkeypatch.undo()
    refused = pair.ask(commit_frame(version, 2, [("visits", 0, 2)]))

    assert refused != pair.ask(commit_frame(version, 2, [("other", 0, 2)]))
    pair.check_logs()


def test_who_commits_for_partitions_in_turn_is_learnt_seldom(
    pair: Pair, short_ways: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = 0
    shape_of = prepared_commit._shape_of

    def counted(*about: Any) -> Any:
        nonlocal built
        built += 1
        return shape_of(*about)

    monkeypatch.setattr(prepared_commit, "_shape_of", counted)
    for number in range(200):
        pair.ask(commit_frame(8, number, [("visits", number % 3, number)]))
    assert built < 70

    del short_ways[:]
    for number in range(200):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))
    assert short_ways.count(True) > 100
    pair.check_logs()


def test_idle_connections_keep_no_metadata(pair: Pair) -> None:
    for number in range(3):
        pair.ask(commit_frame(8, number, [("visits", 0, number)]))
    snapshot = pair.short.services.metadata.current
    pair.short.create("another")

    assert sys.getrefcount(snapshot) == 2
