"""Shards come and go with their partitions: loads, races between them, broken logs."""

import struct
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from kavka.coordinator.runtime import loading
from kavka.coordinator.runtime.batches import batch_of, end_marker
from kavka.coordinator.runtime.loading import Slices, replay_log
from kavka.coordinator.runtime.record_decoding import RecordDecoder
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Result
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.internal.group_records import GROUP_RECORDS
from kavka.protocol.records.batch import Codec, Record, build_batch
from tests.support.internal_log import MemoryLog
from tests.support.processes import wait_until
from tests.support.tiny_shard import NOW_MS, Answers, TinyShard, TinyWorld, bare_shard, record_of


@pytest.fixture
def world() -> Iterator[TinyWorld]:
    world = TinyWorld()
    yield world
    world.loading.set()
    world.runtime.stop()
    assert world.died == []


def log_of(*records: CoordinatorRecord, codec: int = Codec.NONE, per_batch: int = 1) -> MemoryLog:
    log = MemoryLog()
    for first in range(0, len(records), per_batch):
        log.append(batch_of(records[first : first + per_batch], NOW_MS, codec=codec), 0)
    return log


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("per_batch", [1, 7])
@pytest.mark.parametrize("buffer_bytes", [1, 200, 1 << 20])
def test_a_load_replays_the_log_in_order(world: TinyWorld, codec: int, per_batch: int, buffer_bytes: int) -> None:
    world.load_buffer_bytes = buffer_bytes
    log = log_of(
        *(record_of(f"g{n % 5}", None if n % 11 == 10 else n) for n in range(100)), codec=codec, per_batch=per_batch
    )

    world.lead(log)

    # 98 % 11 is 10, so that g3's last record is a tombstone.
    assert world.offsets() == {"g0": 95, "g1": 96, "g2": 97, "g4": 99}
    (shard,) = world.runtime.shards()
    assert (shard.is_loaded, shard.replayed) == (True, 100)


def test_a_partition_is_refused_until_it_is_loaded_and_after_it_is_gone(world: TinyWorld) -> None:
    assert world.get("g").errors == [ErrorCode.NOT_COORDINATOR]
    world.loading.clear()
    world.runtime.leads(0, 0, log_of(record_of("g", 5)))
    assert world.get("g").errors == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    world.loading.set()
    world.wait_for(ShardState.ACTIVE)
    assert world.get("g").replies == [5]

    world.runtime.resigns(0)

    assert world.get("g").errors == [ErrorCode.NOT_COORDINATOR]
    assert world.runtime.states() == {}


def test_what_waits_is_answered_when_the_partition_goes(world: TinyWorld) -> None:
    world.lead(log_of())
    waiting = Answers()
    world.runtime.run(0, lambda shard: shard.wait(waiting.reply), waiting.refuse)

    world.runtime.resigns(0)
    assert waiting.replies == [], "whoever gives the leadership away must not wait for that"
    world.run_jobs()

    assert waiting.replies == [ErrorCode.NOT_COORDINATOR]


def test_pending_transactions_are_replayed_with_their_ends(world: TinyWorld) -> None:
    log = MemoryLog()
    for producer, group in ((Producer(1, 0), "kept"), (Producer(2, 0), "dropped"), (Producer(3, 0), "open")):
        log.append(batch_of([record_of(group, 5)], NOW_MS, producer=producer), 0)
    log.append(end_marker(Producer(1, 0), 0, NOW_MS, committed=True), 0)
    log.append(end_marker(Producer(2, 0), 0, NOW_MS, committed=False), 0)

    world.lead(log)

    (shard,) = world.runtime.shards()
    assert (shard.offsets, shard.pending) == ({"kept": 5}, {3: {"open": 5}})


def test_records_of_a_later_kafka_are_skipped_and_others_kept(world: TinyWorld) -> None:
    log = log_of(record_of("a", 1))
    unknown = Record(timestamp_ms=NOW_MS, key=struct.pack(">h", 77) + b"?", value=b"?")
    log.append(bytearray(build_batch([unknown])), 0)
    log.append(batch_of([record_of("b", 2)], NOW_MS), 0)

    loaded = replay_log(log, bare_shard(), RecordDecoder(GROUP_RECORDS), 1 << 20, lambda: True, Slices())

    assert loaded is not None
    assert (loaded.records, loaded.unknown_records) == (2, 1)


@pytest.mark.parametrize(
    "broken",
    [
        Record(key=None, value=b"x"),
        Record(key=b"", value=b"x"),
        Record(key=b"\0\1\0", value=b"x"),
        Record(key=b"\0\2\0\1g", value=b"\0\3"),
        Record(key=b"\0\2\0\1g", value=b"\x7f\0"),
        Record(key=b"\0\1\0\1g\0\1t\0\0\0\0", value=b"\0\3" + bytes(12) + b"\x7f\xff" + bytes(8)),
        Record(key=b"\0\1\0\1g\0\1t\0\0\0\0", value=b"\0\3" + bytes(12) + b"\0\1\xff" + bytes(8)),
    ],
    ids=["no key", "empty key", "cut key", "cut value", "value of version 32512", "lying length", "not UTF-8"],
)
def test_a_broken_record_ends_the_load_rather_than_half_of_the_state_being_served(broken: Record) -> None:
    log = MemoryLog()
    log.append(bytearray(build_batch([broken])), 0)

    with pytest.raises(DecodeError):
        replay_log(log, bare_shard(), RecordDecoder(GROUP_RECORDS), 1 << 20, lambda: True, Slices())


def test_leadership_lost_half_way_ends_the_load(world: TinyWorld) -> None:
    world.load_buffer_bytes = 1
    log = log_of(*(record_of(f"g{n}", n) for n in range(50)))
    log.before_read = lambda: world.runtime.resigns(0) if log.reads == 10 else None

    world.runtime.leads(0, 0, log)
    wait_until(lambda: log.reads == 10, 60, "never read")
    world.lead(log_of(record_of("h", 1)), partition=1)

    assert log.reads == 10
    assert world.runtime.states() == {1: ShardState.ACTIVE}


def test_of_two_loads_the_later_leadership_wins(world: TinyWorld) -> None:
    world.loading.clear()
    old, new = log_of(record_of("g", 1)), log_of(record_of("g", 2))
    new.leader_epoch = 3
    world.runtime.leads(0, 1, old)
    world.runtime.resigns(0)
    world.runtime.leads(0, 3, new)
    world.loading.set()
    world.wait_for(ShardState.ACTIVE)

    assert world.offsets() == {"g": 2}
    assert world.put("g", 7).replies == [7]
    assert (old.end_offset, new.end_offset) == (1, 2)


def test_a_leader_that_goes_on_under_another_epoch_keeps_its_state_and_appends_with_the_new_one(
    world: TinyWorld,
) -> None:
    log = log_of(record_of("g", 1))
    world.lead(log)
    (shard,) = world.runtime.shards()
    log.leader_epoch = 4
    assert world.put("g", 2).errors == [ErrorCode.NOT_COORDINATOR]

    world.runtime.leads(0, 4, log)

    assert world.runtime.shards() == [shard]
    assert shard.context.leader_epoch == 4
    assert world.put("g", 2).replies == [2]


@pytest.mark.parametrize("is_led_on", [True, False])
def test_a_broken_shard_is_not_loaded_for_a_leadership_that_is_over(
    world: TinyWorld, monkeypatch: pytest.MonkeyPatch, *, is_led_on: bool
) -> None:
    """The controller speaks while the shard, which is at something, is being replaced."""
    log = log_of()
    world.lead(log)
    (shard,) = world.runtime.shards()
    assert world.put("poison", 1).errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    world.poison = None

    def unloaded() -> Result:
        log.leader_epoch = 1
        world.runtime.resigns(0)
        if is_led_on:
            world.runtime.leads(0, 1, log)
        return NOTHING

    monkeypatch.setattr(shard, "unloaded", unloaded)
    world.run_jobs()

    if is_led_on:
        world.wait_for(ShardState.ACTIVE)
        assert world.put("g", 5).replies == [5]
    else:
        told = threading.Event()
        world.runtime.after_loads(told.set)
        assert told.wait(60)
        assert world.runtime.states() == {}


def test_what_is_gone_appends_nothing_even_while_an_operation_decides(world: TinyWorld) -> None:
    log = log_of()
    world.lead(log)
    answers = Answers()

    def lose_it_and_write(shard: TinyShard) -> Result:
        world.runtime.resigns(0)
        return shard.put("g", 1, answers.reply)

    world.runtime.run(0, lose_it_and_write, answers.refuse)

    assert (answers.replies, answers.errors, log.end_offset) == ([], [ErrorCode.NOT_COORDINATOR], 0)


def test_records_that_were_deleted_meanwhile_are_passed_over(world: TinyWorld) -> None:
    world.load_buffer_bytes = 1
    log = log_of(*(record_of(f"g{n}", n) for n in range(10)))

    def delete_records() -> None:
        if log.reads == 3:
            log.start_offset = 7

    log.before_read = delete_records
    world.lead(log)

    assert sorted(world.offsets()) == ["g0", "g1", "g7", "g8", "g9"]


def test_all_loaded_shards_are_asked_and_the_others_refuse(world: TinyWorld) -> None:
    world.lead(log_of(record_of("a", 1)), partition=0)
    world.lead(log_of(record_of("b", 2)), partition=1)
    world.loading.clear()
    world.runtime.leads(2, 0, log_of())
    answers = Answers()

    asked = world.runtime.run_all(lambda shard: shard.get(next(iter(shard.offsets)), answers.reply), answers.refuse)

    assert (asked, sorted(answers.replies)) == (2, [1, 2])
    assert answers.errors == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_stop_ends_a_load_and_answers_what_waits(world: TinyWorld) -> None:
    waiting = Answers()
    world.lead(log_of(), partition=1)
    world.runtime.run(1, lambda shard: shard.wait(waiting.reply), waiting.refuse)
    world.load_buffer_bytes = 1
    log = log_of(*(record_of(f"g{n}", n) for n in range(50)))
    reached: list[int] = []
    log.before_read = partial(reached.append, 1)
    world.runtime.leads(0, 0, log)
    wait_until(lambda: reached, 60, "never read")

    world.runtime.stop()

    assert waiting.replies == [ErrorCode.NOT_COORDINATOR]
    assert world.get("g").errors == [ErrorCode.NOT_COORDINATOR]
    world.runtime.leads(0, 1, log)
    assert world.runtime.states() == {}


def test_who_asks_is_told_when_what_waits_to_be_loaded_is_loaded(world: TinyWorld) -> None:
    told: list[object] = []
    world.runtime.after_loads(lambda: told.append("nothing waits"))
    world.loading.clear()
    world.runtime.leads(0, 0, log_of(record_of("g", 5)))
    world.runtime.after_loads(lambda: told.append(world.get("g").replies))
    assert told == ["nothing waits"]

    world.loading.set()

    wait_until(lambda: len(told) == 2, 60, "never told")
    assert told[1] == [5]


def test_who_waits_for_loads_is_told_of_the_end_too(world: TinyWorld) -> None:
    told: list[str] = []
    world.load_buffer_bytes = 1
    log = log_of(*(record_of(f"g{n}", n) for n in range(50)))
    log.before_read = partial(told.append, "read")
    world.runtime.leads(0, 0, log)
    wait_until(lambda: told, 60, "never read")
    world.runtime.after_loads(lambda: told.append("told"))

    world.runtime.stop()

    assert told[-1] == "told"


def test_shards_hear_of_topics_once_for_many_changes(world: TinyWorld) -> None:
    world.lead(log_of())
    world.topics.add("t")

    world.runtime.topics_changed()
    world.topics.add("u")
    world.runtime.topics_changed()
    assert len(world.jobs) == 1
    world.run_jobs()

    assert world.runtime.shards()[0].topics_seen == 2


def test_a_load_gives_the_interpreter_away_after_each_slice() -> None:
    clock = iter(range(0, 10**12, 20_000))
    pauses: list[float] = []
    log = log_of(*(record_of(f"g{n % 3}", n) for n in range(6400)), per_batch=640)

    slices = Slices(lambda: next(clock), pauses.append)
    replay_log(log, bare_shard(), RecordDecoder(GROUP_RECORDS), 1 << 20, lambda: True, slices)

    # A look at the clock, which here moves by 20 us each time, comes with every 32 records.
    assert len(pauses) >= 6400 // 32 * 20_000 // loading.SLICE_NS


@pytest.mark.parametrize("changes", [1, 2, 3])
def test_what_is_just_being_appended_is_part_of_the_next_load(world: TinyWorld, changes: int) -> None:
    """However often leadership comes and goes meanwhile."""
    appending, may_append = threading.Event(), threading.Event()

    class SlowLog(MemoryLog):
        def append(self, batch: bytearray, leader_epoch: int, transaction_version: int = 0, guard: int = 0) -> int:
            appending.set()
            assert may_append.wait(60)
            return super().append(batch, leader_epoch, transaction_version, guard)

    log = SlowLog()
    world.lead(log)
    writer = threading.Thread(target=lambda: world.put("g", 7))
    writer.start()
    assert appending.wait(60)

    # The loader has another partition to load first.
    world.loading.clear()
    world.runtime.leads(1, 0, MemoryLog())
    for _ in range(changes):
        world.runtime.resigns(0)
        world.runtime.leads(0, 0, log)
    told = threading.Event()
    world.runtime.after_loads(told.set)
    world.loading.set()
    assert not told.wait(0.05)
    may_append.set()
    writer.join()
    world.wait_for(ShardState.ACTIVE)

    assert world.offsets() == {"g": 7}
