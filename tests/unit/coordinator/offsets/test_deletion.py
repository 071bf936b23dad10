"""Offsets that go: by request, by age (KIP-211), with their group."""

import contextlib

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.group import OffsetExpiry
from kavka.coordinator.group.offsets.deletion import DELETIONS, EXPIRATIONS, EXPIRY_TIMER
from kavka.coordinator.group.offsets.records import Tombstones, offset_tombstone
from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataKey
from tests.support.offset_stage import CHECK_INTERVAL_MS, GROUP, MINUTE_MS, TOPIC, FakeGroup, OffsetStage, codes

ONE = Producer(7, 0)
HOUR = {"offsets.retention.minutes": "60"}


def test_offsets_are_deleted_but_of_subscribed_topics() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1, ("others", 0): 1})
    stage.shard.groups.put(FakeGroup(subscribed=[TOPIC]))

    answer = stage.delete_offsets([(TOPIC, 0), ("others", 0), ("others", 5)]).answer

    assert answer.error_code == ErrorCode.NONE
    assert codes(answer) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert stage.offsets() == {(TOPIC, 0): 1}
    assert stage.keys() == [(GROUP, "others", 0)]
    assert stage.counts[DELETIONS] == 1


def test_offsets_of_no_group_or_of_a_group_that_refuses_are_not_deleted() -> None:
    stage = OffsetStage()

    assert stage.delete_offsets([(TOPIC, 0)]).error is ErrorCode.GROUP_ID_NOT_FOUND
    stage.shard.groups.put(FakeGroup(refuse=ErrorCode.NON_EMPTY_GROUP))
    assert stage.delete_offsets([(TOPIC, 0)]).error is ErrorCode.NON_EMPTY_GROUP


def test_a_standalone_consumers_offset_expires_by_its_own_age_and_the_last_one_takes_the_group_along() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1})
    stage.advance(30 * MINUTE_MS)
    stage.put_offsets({(TOPIC, 1): 1})

    stage.advance(25 * MINUTE_MS)
    assert stage.offsets() == {(TOPIC, 0): 1, (TOPIC, 1): 1}
    stage.advance(20 * MINUTE_MS)
    assert stage.offsets() == {(TOPIC, 1): 1}
    assert stage.shard.groups.get(GROUP) is not None
    stage.advance(30 * MINUTE_MS)

    assert stage.offsets() == {}
    assert stage.shard.groups.get(GROUP) is None
    assert stage.keys() == [(GROUP, TOPIC, 0), (GROUP, TOPIC, 1), (GROUP,)]
    assert stage.counts[EXPIRATIONS] == 2


def test_an_offset_committed_again_is_young_again() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1})
    stage.advance(50 * MINUTE_MS)
    stage.put_offsets({(TOPIC, 0): 2})

    stage.advance(40 * MINUTE_MS)

    assert stage.offsets() == {(TOPIC, 0): 2}


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1})
    emptied_ms = stage.time_ms + 50 * MINUTE_MS
    stage.shard.groups.put(FakeGroup(empty=True, state="Empty", base_timestamp_ms=lambda _: emptied_ms))

    stage.advance(100 * MINUTE_MS)
    assert stage.offsets() == {(TOPIC, 0): 1}
    stage.advance(20 * MINUTE_MS)

    assert stage.offsets() == {}


def test_offsets_of_topics_that_members_are_subscribed_to_never_expire() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1, ("others", 0): 1})
    stage.shard.groups.put(FakeGroup(subscribed=[TOPIC], base_timestamp_ms=lambda commit_ms: commit_ms))

    stage.advance(200 * MINUTE_MS)

    assert stage.offsets() == {(TOPIC, 0): 1}


def test_a_group_that_says_nothing_of_expiry_keeps_its_offsets() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1})
    stage.shard.groups.put(FakeGroup())

    stage.advance(200 * MINUTE_MS)

    assert stage.offsets() == {(TOPIC, 0): 1}


def test_an_expire_timestamp_of_its_own_counts_instead_of_the_retention() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1}, retention_time_ms=5 * MINUTE_MS, version=2)
    stage.put_offsets({(TOPIC, 1): 1}, retention_time_ms=500 * MINUTE_MS, version=2)

    stage.advance(200 * MINUTE_MS)

    assert stage.offsets() == {(TOPIC, 1): 1}


def test_an_offset_does_not_expire_while_a_transactional_one_is_pending() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1, (TOPIC, 1): 1})
    stage.txn_commit({(TOPIC, 0): 2}, ONE)

    stage.advance(200 * MINUTE_MS)
    assert stage.offsets() == {(TOPIC, 0): 1}
    assert stage.shard.groups.get(GROUP) is not None
    stage.end_transaction(ONE, committed=False)
    stage.expire()

    assert stage.offsets() == {}
    assert stage.shard.groups.get(GROUP) is None


def test_a_group_with_nothing_but_a_pending_offset_stays() -> None:
    stage = OffsetStage(HOUR)
    stage.txn_commit({(TOPIC, 0): 2}, ONE)

    stage.advance(200 * MINUTE_MS)
    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, 0): 2}


def test_an_empty_group_without_offsets_goes_with_the_next_check() -> None:
    stage = OffsetStage()
    stage.shard.groups.put(ClassicGroup("idle", stage))

    stage.expire()

    assert stage.shard.groups.get("idle") is None
    assert [record.key for record in stage.records()] == [GroupMetadataKey(group="idle")]


def test_the_expiry_goes_on_after_a_failed_append_and_after_a_reload() -> None:
    stage = OffsetStage(HOUR)
    stage.put_offsets({(TOPIC, 0): 1})
    stage.advance(59 * MINUTE_MS)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    stage.advance(2 * MINUTE_MS)
    assert (stage.offsets(), stage.counts[EXPIRATIONS]) == ({(TOPIC, 0): 1}, 0)
    stage.reload()
    assert stage.timers.is_scheduled(EXPIRY_TIMER)
    stage.expire()

    assert stage.offsets() == {}


def test_many_offsets_expire_in_slices_and_nothing_is_lost_in_between() -> None:
    stage = OffsetStage(HOUR)
    for number in range(30):
        stage.put_offsets({(f"t{number}", partition): 1 for partition in range(100)})
    stage.advance(60 * MINUTE_MS)
    log_size = len(stage.log)
    while len(stage.log) == log_size:
        stage.advance(1)
    assert 0 < len(stage.log) - log_size <= 1000
    stage.put_offsets({("t29", 99): 5, ("new", 0): 6})

    stage.advance(1_000)

    assert stage.offsets() == {("t29", 99): 5, ("new", 0): 6}
    assert stage.shard.groups.get(GROUP) is not None
    stage.advance(CHECK_INTERVAL_MS)
    assert stage.offsets() == {("t29", 99): 5, ("new", 0): 6}


def test_deleting_a_group_deletes_all_its_offsets_pending_ones_too() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})
    stage.put_offsets({(TOPIC, 0): 1}, "another")
    stage.txn_commit({(TOPIC, 0): 2, (TOPIC, 1): 2}, ONE)

    assert stage.delete_groups(GROUP) == {GROUP: ErrorCode.NONE}
    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {}
    assert stage.keys() == [(GROUP, TOPIC, 0), (GROUP, TOPIC, 1), (GROUP,)]
    assert stage.offsets("another") == {(TOPIC, 0): 1}
    stage.reload()
    assert stage.list_groups() == ["another"]


def test_groups_that_are_not_there_or_not_empty_are_not_deleted() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})
    stage.shard.groups.put(FakeGroup("busy", refuse=ErrorCode.NON_EMPTY_GROUP))

    results = stage.delete_groups("busy", "nobody", GROUP, "nobody")

    assert results == {
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        GROUP: ErrorCode.NONE,
    }


def test_more_tombstones_than_a_batch_holds_are_written_one_batch_after_the_other() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(2_500)})
    stage.holds_replies = True
    before = len(stage.log)

    asked = stage.ask(lambda shard, reply: shard.delete_groups([GROUP], reply))
    assert asked.waits
    stage.holds_replies = False
    stage.commit()

    assert asked.answer[0].error_code == ErrorCode.NONE
    assert len(stage.log) - before == 2_501
    assert stage.shard.groups.get(GROUP) is None


def test_tombstones_of_long_names_are_written_in_batches_that_fit() -> None:
    records = [offset_tombstone("g" * 30_000, "t" * 249, partition) for partition in range(100)]
    results = [Tombstones(records, ((print, "done"),)).result()]
    while (following := results[-1].appended and results[-1].appended()) is not None:
        results.append(following)
    assert all(len(batch_of(each.records, 0)) <= 1_048_588 for each in results)
    assert [bool(each.replies) for each in results] == [*[False] * (len(results) - 1), True]
    assert [record for each in results for record in each.records] == records


def test_a_batch_of_tombstones_that_the_topic_finds_too_large_is_halved() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(10)})
    stage.fail_next_append(ErrorCode.UNKNOWN_SERVER_ERROR, cause=ErrorCode.MESSAGE_TOO_LARGE)

    asked = stage.ask(lambda shard, reply: shard.delete_groups([GROUP], reply))

    assert asked.answer[0].error_code == ErrorCode.NONE
    assert stage.offsets() == {}
    assert stage.shard.groups.get(GROUP) is None


def test_tombstones_that_cannot_be_written_refuse_the_request() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(10)})
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    asked = stage.ask(lambda shard, reply: shard.delete_groups([GROUP], reply))

    assert asked.error is ErrorCode.NOT_COORDINATOR
    assert len(stage.offsets()) == 10


def test_a_group_at_which_the_expiry_fails_keeps_no_other_from_it() -> None:
    class Broken(FakeGroup):
        def offset_expiry(self, now_ms: int) -> OffsetExpiry | None:
            raise ZeroDivisionError

    stage = OffsetStage(HOUR)
    stage.shard.groups.put(Broken("broken", state="Empty"))
    stage.put_offsets({(TOPIC, 0): 1})
    for _ in range(20):
        with contextlib.suppress(ZeroDivisionError):
            stage.advance(CHECK_INTERVAL_MS)

    assert stage.offsets() == {}
