"""What a consumer group answers others: commits, fetches, deletion, expiry, description; and replay in odd orders."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.coordinator.group.consumer.member import Member
from kavka.coordinator.group.consumer.records import with_assignment
from kavka.coordinator.group.group import Client, GroupType
from kavka.coordinator.group.offsets.repeated import RepeatedCommit
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from kavka.protocol.internal.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    CurrentTopicPartitions,
)
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.classic_requests import classic_join
from tests.support.consumer_stage import GROUP, ConsumerStage, facts


@pytest.fixture
def stage() -> ConsumerStage:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    stage.joined("a", ["t"], instance_id="i")
    return stage


def refusal(call: Any, *arguments: Any, **named: Any) -> ErrorCode | None:
    try:
        call(*arguments, **named)
    except BrokerError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("member_id", "epoch", "transactional", "version", "code"),
    [
        ("a", 1, False, 9, None),
        ("a", 2, False, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 1, False, 8, ErrorCode.UNSUPPORTED_VERSION),
        ("a", 1, True, 3, None),
        ("x", 1, False, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, False, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, True, 3, None),
    ],
)
def test_only_a_member_in_its_epoch_commits(
    stage: ConsumerStage, member_id: str, epoch: int, transactional: bool, version: int, code: ErrorCode | None
) -> None:
    validate = stage.group().validate_offset_commit
    assert refusal(validate, member_id, None, epoch, transactional=transactional, api_version=version) is code


def test_an_epoch_before_the_members_will_do_for_what_it_had_then() -> None:
    stage = ConsumerStage()
    topic_id = stage.topics.add("t", 4)
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    a.beat()
    stage.settle(a, b)
    assert (a.epoch, b.epoch) == (2, 2)
    kept, given = (min(number for _, number in member.owns) for member in (a, b))

    def code(member_id: str, epoch: int, partition: int) -> ErrorCode | None:
        check = stage.group().validate_offset_commit(member_id, None, epoch, transactional=False, api_version=9)
        return None if check is None else refusal(check, "t", topic_id, partition)

    for reloaded in (False, True):
        if reloaded:
            stage.reload()
        assert code("a", 1, kept) is None
        assert code("a", 0, kept) is ErrorCode.STALE_MEMBER_EPOCH
        assert code("a", 1, given) is ErrorCode.STALE_MEMBER_EPOCH
        assert code("a", 2, given) is None, "in its own epoch a member may commit whatever it likes"
        assert code("b", 1, given) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_commit_in_an_old_epoch_is_refused_whole_for_one_partition_of_others() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    a.beat()
    stage.settle(a, b)
    kept, given = (min(number for _, number in member.owns) for member in (a, b))
    client = Client("c", "/127.0.0.1", 9)

    def request(*indexes: int) -> OffsetCommitRequest:
        partitions = [
            OffsetCommitRequestPartition(partition_index=each, committed_offset=5, committed_metadata=None)
            for each in indexes
        ]
        topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
        return OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=1, member_id="a", topics=topics)

    def in_transaction(*indexes: int) -> TxnOffsetCommitRequest:
        partitions = [
            TxnOffsetCommitRequestPartition(partition_index=each, committed_offset=5, committed_metadata=None)
            for each in indexes
        ]
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=partitions)]
        return TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=GROUP,
            producer_id=1,
            producer_epoch=0,
            generation_id=1,
            member_id="a",
            topics=topics,
        )

    written = len(stage.log)
    asked = stage.ask(lambda shard, reply: shard.commit(request(kept, given), client, reply))
    assert asked.error is ErrorCode.STALE_MEMBER_EPOCH
    asked = stage.ask(lambda shard, reply: shard.txn_commit(in_transaction(kept, given), client, reply))
    assert asked.error is ErrorCode.ILLEGAL_GENERATION
    repeated = RepeatedCommit(request(kept), 9)
    asked = stage.ask(lambda shard, _: shard.repeat_commit(repeated))
    assert asked.error is ErrorCode.STALE_MEMBER_EPOCH, "the ordinary way looks at each partition"
    assert len(stage.log) == written
    asked = stage.ask(lambda shard, reply: shard.commit(request(kept), client, reply))
    assert asked.answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    asked = stage.ask(lambda shard, reply: shard.txn_commit(in_transaction(kept), client, reply))
    assert asked.answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_static_member_that_comes_back_may_commit_in_the_epoch_in_which_it_does() -> None:
    stage = ConsumerStage()
    topic_id = stage.topics.add("t", 1)
    stage.joined("a", ["t"], instance_id="i").leave(-2)
    assert stage.logged.members["a"].assignment_epoch(topic_id, 0) == 0
    stage.joined("b", ["t"], instance_id="i")
    assert stage.logged.members["b"].assignment_epoch(topic_id, 0) == 0


def test_partitions_of_a_record_that_says_no_assignment_epochs_are_the_members_since_its_own() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=0,
        assigned_partitions=[CurrentTopicPartitions(topic_id=bytes(16), partitions=[0, 1])],
        partitions_pending_revocation=[
            CurrentTopicPartitions(topic_id=bytes(16), partitions=[2], assignment_epochs=[3]),
            CurrentTopicPartitions(topic_id=bytes(16), partitions=[4], assignment_epochs=[1, 2]),
        ],
    )
    member = with_assignment(Member("a"), value)
    assert [member.assignment_epoch(bytes(16), number) for number in range(6)] == [7, 7, 3, None, 7, None]


def test_a_classic_member_commits_with_its_generation(stage: ConsumerStage) -> None:
    metadata = encode_subscription(ConsumerProtocolSubscription(topics=["t"]))
    classic = classic_join(stage, "c", metadata).answer
    validate = stage.group().validate_offset_commit
    assert refusal(validate, "c", None, classic.generation_id, transactional=False, api_version=5) is None
    check = validate("c", None, classic.generation_id - 1, transactional=False, api_version=5)
    assert check is not None
    assert refusal(check, "t", bytes(16), 0) is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, None),
        ("a", 1, None),
        ("a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_only_a_member_in_its_epoch_fetches_or_nobody_in_particular(
    stage: ConsumerStage, member_id: str | None, epoch: int, code: ErrorCode | None
) -> None:
    assert refusal(stage.group().validate_offset_fetch, member_id, epoch) is code


def test_an_empty_group_may_be_deleted_and_takes_commits_of_anybody(stage: ConsumerStage) -> None:
    group = stage.group()
    assert refusal(group.validate_delete) is ErrorCode.NON_EMPTY_GROUP
    stage.heartbeat("a", -1, instance_id="i")
    assert refusal(group.validate_delete) is None
    assert refusal(group.validate_offset_commit, "", None, -1, transactional=False, api_version=2) is None
    assert (group.is_empty, group.type, group.protocol_type) == (True, GroupType.CONSUMER, "consumer")


def test_offsets_expire_from_their_commit_unless_a_member_is_subscribed(stage: ConsumerStage) -> None:
    stage.joined("b", regex="u.*")
    stage.topics.add("u1", 1)
    stage.advance(20_000)
    stage.heartbeat("b", stage.logged.members["b"].epoch)
    stage.advance(1)
    group = stage.group()
    expiry = group.offset_expiry(stage.time_ms)
    assert expiry is not None
    assert expiry.base_timestamp_ms(123) == 123
    assert [expiry.spares(topic) for topic in ("t", "u1", "v")] == [True, True, False]
    assert group.is_subscribed_to("u1")


def test_describe_tells_what_members_have_and_shall_have(stage: ConsumerStage) -> None:
    stage.joined("b", ["t", "none"], regex="")
    a = stage.heartbeat("a", 1, instance_id="i")
    assert a.answer.member_epoch == 1
    found, unknown = stage.ask(lambda shard, reply: shard.consumer.describe([GROUP, "no"], reply)).answer
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Reconciling", 2, 2)
    assert found.assignor_name == "uniform"
    first, second = sorted(found.members, key=lambda member: member.member_id)
    assert (first.member_id, first.instance_id, first.member_epoch, first.member_type) == ("a", "i", 1, 1)
    assert [len(part.partitions) for part in first.assignment.topic_partitions] == [4], "also what it must give up"
    assert [(part.topic_name, len(part.partitions)) for part in first.target_assignment.topic_partitions] == [("t", 2)]
    assert second.subscribed_topic_names == ["none", "t"]
    assert second.assignment.topic_partitions == []
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group no not found.")


def test_records_of_members_replay_in_any_order(stage: ConsumerStage) -> None:
    """As a compacted log may hold them: the last of each key, in whatever order that leaves."""
    b = stage.joined("b", ["t"])
    b.beat()
    stage.joined("c", ["t"]).leave()
    last: dict[str, CoordinatorRecord] = {repr(record.key): record for record in stage.records()}
    values = [record for record in last.values() if record.value is not None]
    tombstones = [record for record in last.values() if record.value is None]
    expected = facts(stage.logged)
    for order in itertools.islice(itertools.permutations(values), 0, 5000, 97):
        for records in ([*order, *tombstones], [*tombstones, *order], list(order)):
            replayed = ConsumerStage(topics=stage.topics)
            for record in records:
                replayed.shard.replay(record, 0, None)
            assert facts(replayed.logged) == expected


def test_all_records_and_then_all_tombstones_leave_no_group(stage: ConsumerStage) -> None:
    stage.joined("b", regex="t")
    stage.advance(1)
    tombstones = stage.group().tombstones()
    for record in tombstones:
        stage.shard.replay(record, 0, None)
    assert stage.shard.groups.get(GROUP) is None
    assert "consumer" not in str(stage.timers.keys())
    for record in tombstones:
        stage.shard.replay(record, 0, None)
    assert stage.shard.groups.get(GROUP) is None


def test_the_history_tells_who_did_what(stage: ConsumerStage) -> None:
    b = stage.joined("b", ["t"])
    b.leave()
    group = stage.group()
    assert isinstance(group, ConsumerGroup)
    assert [each.reason for each in group.history] == ["member a joined", "member b joined", "member b left"]
    assert [each.new_state for each in group.history] == ["Stable", "Reconciling", "Assigning"]
