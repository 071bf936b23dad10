"""TxnOffsetCommit: pending until the marker comes; then it stands, or is gone."""

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from tests.support.offset_stage import GROUP, TOPIC, FakeGroup, OffsetStage, codes

ONE = Producer(7, 0)
OTHER = Producer(8, 3)


@pytest.mark.parametrize("committed", [True, False])
def test_an_offset_is_pending_until_the_marker_says_what_becomes_of_it(committed: bool) -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})

    assert codes(stage.txn_commit({(TOPIC, 0): 5}, ONE).answer) == [ErrorCode.NONE]
    assert stage.offsets() == {(TOPIC, 0): 1}
    stage.end_transaction(ONE, committed=committed)

    assert stage.offsets() == {(TOPIC, 0): 5 if committed else 1}


def test_who_requires_stable_offsets_waits_for_the_marker() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1, (TOPIC, 1): 1})
    stage.txn_commit({(TOPIC, 0): 5, (TOPIC, 2): 5}, ONE)

    named = stage.ask_offsets([(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)], stable=True).answer
    everything = stage.ask_offsets(None, stable=True).answer
    careless = stage.ask_offsets([(TOPIC, 0)]).answer
    stage.end_transaction(ONE, committed=True)

    assert codes(named) == [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    assert [part.committed_offset for topic in named.topics for part in topic.partitions] == [-1, 1, -1]
    assert codes(everything) == [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NONE]
    assert codes(careless) == [ErrorCode.NONE]
    assert codes(stage.ask_offsets([(TOPIC, 0)], stable=True).answer) == [ErrorCode.NONE]


def test_the_later_record_wins_when_plain_and_transactional_commits_mix() -> None:
    stage = OffsetStage()
    stage.txn_commit({(TOPIC, 0): 5, (TOPIC, 1): 5}, ONE)
    stage.put_offsets({(TOPIC, 0): 9})

    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, 0): 9, (TOPIC, 1): 5}


def test_two_producers_do_not_end_each_others_transactions() -> None:
    stage = OffsetStage()
    stage.txn_commit({(TOPIC, 0): 5}, ONE)
    stage.txn_commit({(TOPIC, 0): 6, (TOPIC, 1): 6}, OTHER)

    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, 0): 5}
    assert codes(stage.ask_offsets([(TOPIC, 0)], stable=True).answer) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    stage.end_transaction(OTHER, committed=True)
    assert stage.offsets() == {(TOPIC, 0): 6, (TOPIC, 1): 6}


def test_pending_offsets_survive_a_reload() -> None:
    stage = OffsetStage()
    stage.txn_commit({(TOPIC, 0): 5}, ONE)

    stage.reload()
    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, 0): 5}
    stage.reload()
    assert stage.offsets() == {(TOPIC, 0): 5}


def test_a_deleted_offset_does_not_come_back_with_the_marker() -> None:
    stage = OffsetStage()
    stage.txn_commit({(TOPIC, 0): 5, (TOPIC, 1): 5}, ONE)

    stage.delete_offsets([(TOPIC, 0)])
    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, 1): 5}


def test_the_records_are_the_producers() -> None:
    stage = OffsetStage()

    stage.txn_commit({(TOPIC, 0): 5}, ONE)

    assert [stored.producer for stored in stage.log] == [ONE]


def test_a_group_that_is_not_there_or_a_stale_epoch_is_an_illegal_generation() -> None:
    stage = OffsetStage()

    assert stage.txn_commit({(TOPIC, 0): 5}, ONE, member="m", generation=1).error is ErrorCode.ILLEGAL_GENERATION
    group = FakeGroup(refuse=ErrorCode.STALE_MEMBER_EPOCH)
    stage.shard.groups.put(group)
    assert stage.txn_commit({(TOPIC, 0): 5}, ONE, member="m", generation=1).error is ErrorCode.ILLEGAL_GENERATION
    assert group.asked == [("commit", "m", None, 1, True, 3)]
    group.refuse = ErrorCode.FENCED_INSTANCE_ID
    assert stage.txn_commit({(TOPIC, 0): 5}, ONE, member="m", generation=1).error is ErrorCode.FENCED_INSTANCE_ID
    assert stage.log == []


def test_a_marker_of_a_producer_without_offsets_changes_nothing() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})

    stage.end_transaction(OTHER, committed=True)

    assert stage.offsets() == {(TOPIC, 0): 1}


def test_a_simple_group_comes_into_being_with_a_pending_offset() -> None:
    stage = OffsetStage()

    stage.txn_commit({(TOPIC, 0): 5}, ONE)

    assert stage.shard.groups.get(GROUP) is not None
    assert stage.offsets() == {}


def test_a_failed_append_leaves_nothing_pending() -> None:
    stage = OffsetStage()
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert stage.txn_commit({(TOPIC, 0): 5}, ONE).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not stage.shard.offsets.is_open(GROUP)


def test_metadata_is_limited_here_too() -> None:
    stage = OffsetStage({"offset.metadata.max.bytes": "3"})

    assert codes(stage.txn_commit({(TOPIC, 0): 5}, ONE, metadata="long").answer) == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE
    ]
    assert stage.log == []
