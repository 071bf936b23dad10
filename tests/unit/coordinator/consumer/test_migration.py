"""Classic groups that become consumer groups, classic members within them, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.coordinator.group.consumer.migration import upgraded
from kavka.coordinator.group.consumer.state import LoggedState
from kavka.coordinator.group.consumer.topics import KnownTopics
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    encode_assignment,
)
from kavka.protocol.internal.group_records import GroupMetadataKey
from kavka.protocol.messages.sync_group import SyncGroupRequestAssignment
from tests.support.classic_consumer import ClassicConsumer, assignment_for
from tests.support.classic_requests import classic_beat, classic_join, classic_leave, classic_sync
from tests.support.consumer_stage import GROUP, ConsumerStage, facts
from tests.support.shared_partitions import shared_partitions


@pytest.fixture
def stage() -> ConsumerStage:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0"})
    stage.topics.add("t", 4)
    return stage


def classic_group_of_one(stage: ConsumerStage, **others: Any) -> ClassicConsumer:
    classic = ClassicConsumer(stage, **others)
    asked = classic.join()
    stage.advance(1)
    classic.joined(asked, assigns={"t": [0, 1, 2, 3]})
    return classic


def replays_as_it_is(stage: ConsumerStage) -> None:
    live, replayed = stage.shard.groups.get(GROUP), stage.replayed().groups.get(GROUP)
    assert type(live) is type(replayed)
    if isinstance(live, ConsumerGroup) and isinstance(replayed, ConsumerGroup):
        assert facts(live.logged) == facts(replayed.logged)


def test_a_classic_group_is_upgraded_and_its_member_goes_on_with_what_it_has(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"])
    group = stage.group()

    assert group.logged.classic_members == 1
    assert group.logged.members[classic.member_id].epoch == classic.generation
    assert consumer.owns == set()
    replays_as_it_is(stage)

    classic.follow(shall_own=2)
    for _ in range(3):
        consumer.beat()
        classic.follow(shall_own=2)
    assert len(consumer.owns) == 2
    assert consumer.owns.isdisjoint({("t", number) for number in classic.owns["t"]})
    assert group.state_name == "Stable"
    replays_as_it_is(stage)


def test_the_upgrade_is_one_batch_that_begins_with_the_classic_groups_tombstone(stage: ConsumerStage) -> None:
    classic_group_of_one(stage)
    before = len(stage.records())
    stage.joined("new", ["t"])
    first, *others = stage.records()[before:]
    assert isinstance(first.key, GroupMetadataKey)
    assert first.value is None
    assert all(record.value is not None for record in others)


def test_an_upgrade_whose_append_fails_leaves_the_classic_group_as_it_was(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)
    asked = stage.heartbeat("new", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[])
    assert asked.error is ErrorCode.NOT_COORDINATOR
    assert isinstance(stage.shard.groups.get(GROUP), ClassicGroup)
    assert classic.beat() is ErrorCode.NONE


def test_members_that_wait_in_a_rebalance_are_told_to_join_again(stage: ConsumerStage) -> None:
    classic_group_of_one(stage)
    second = ClassicConsumer(stage)
    waiting = second.join()
    assert waiting.waits
    stage.joined("new", ["t"])
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    second.joined(second.join())
    assert len(stage.logged.members) == 3


@pytest.mark.parametrize(
    ("policy", "why"),
    [("disabled", "online upgrade is disabled"), ("downgrade", "online upgrade is disabled")],
)
def test_an_upgrade_needs_the_policys_leave(policy: str, why: str) -> None:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0", "group.consumer.migration.policy": policy})
    stage.topics.add("t", 4)
    classic_group_of_one(stage)
    asked = stage.heartbeat("new", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[])
    assert asked.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert why in (asked.errors[0].message or "")


def test_a_group_of_another_protocol_type_cannot_be_upgraded(stage: ConsumerStage) -> None:
    waiting = classic_join(stage, "", b"\0\0", protocol_type="connect", version=3)
    stage.advance(1)
    assert waiting.answer.error_code == ErrorCode.NONE
    asked = stage.heartbeat("new", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[])
    assert asked.error is ErrorCode.GROUP_ID_NOT_FOUND


def test_data_of_an_assignor_of_the_clients_own_forbids_the_upgrade(stage: ConsumerStage) -> None:
    classic = ClassicConsumer(stage)
    asked = classic.join()
    stage.advance(1)
    data = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"mine"))
    assignment = SyncGroupRequestAssignment(member_id=classic.member_id, assignment=data)
    classic_sync(stage, classic.member_id, asked.answer.generation_id, [assignment])
    refused = stage.heartbeat("new", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[])
    assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "custom assignor" in (refused.errors[0].message or "")


def test_partitions_that_the_leader_gave_to_two_are_the_first_ones_alone(stage: ConsumerStage) -> None:
    members = [
        ClassicMember(
            member_id,
            client_id="",
            client_host="",
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            protocol_type="consumer",
            protocols=(("range", ClassicConsumer(stage).subscription),),
            assignment=assignment_for(member_id, {"t": numbers}).assignment,
        )
        for member_id, numbers in (("a", [0, 1]), ("b", [1, 2]))
    ]
    classic = ClassicGroup.of_members("g2", members, stage, generation=3, protocol_type="consumer")
    logged = LoggedState("g2")
    for record in upgraded(classic, KnownTopics(stage.topics)):
        logged.apply(record.key, record.value)
    assert not shared_partitions(logged.members.values())
    assert [sorted(*member.assigned.values()) for member in logged.members.values()] == [[0, 1], [2]]


def test_an_empty_classic_group_makes_place(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    classic_leave(stage, classic.member_id)
    consumer = stage.joined("new", ["t"])
    assert len(consumer.owns) == 4
    assert stage.logged.classic_members == 0
    replays_as_it_is(stage)


def test_when_the_last_consumer_leaves_the_group_is_classic_again_and_rebalances(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"])
    classic.follow(shall_own=2)
    consumer.beat()
    consumer.leave()

    group = stage.shard.groups.get(GROUP)
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "PreparingRebalance"
    assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    asked = classic.join()
    classic.joined(asked, assigns={"t": [0, 1, 2, 3]})
    assert classic.beat() is ErrorCode.NONE
    replays_as_it_is(stage)
    stage.reload()
    assert classic.beat() is ErrorCode.NONE


def test_a_consumer_that_is_lost_downgrades_the_group_too(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    stage.joined("new", ["t"])
    for _ in range(60):
        stage.advance(1000)
        if classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS and isinstance(
            stage.shard.groups.get(GROUP), ConsumerGroup
        ):
            classic.joined(classic.join())
    assert isinstance(stage.shard.groups.get(GROUP), ClassicGroup)


def test_without_leave_to_downgrade_the_group_stays_a_consumer_group() -> None:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0", "group.consumer.migration.policy": "upgrade"})
    stage.topics.add("t", 4)
    classic = classic_group_of_one(stage)
    stage.joined("new", ["t"]).leave()
    assert isinstance(stage.shard.groups.get(GROUP), ConsumerGroup)
    classic.follow(shall_own=4)
    stage.topics.add("t", 6)
    classic.follow(shall_own=6)


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"])
    assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(40):
        stage.advance(1000)
        classic.beat()
        consumer.beat()
    assert classic.member_id not in stage.logged.members
    assert len(consumer.owns) == 4


def test_a_classic_member_that_does_not_sync_in_time_is_fenced(stage: ConsumerStage) -> None:
    classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"])
    second = ClassicConsumer(stage)
    second.generation = second.join().answer.generation_id
    for _ in range(40):
        stage.advance(1000)
        classic_beat(stage, second.member_id, second.generation)
        consumer.beat()
    assert second.member_id not in stage.logged.members


def test_classic_requests_are_checked_against_the_member_and_its_epoch(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"])
    assert classic_beat(stage, "nobody", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert classic_beat(stage, "new", consumer.epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert classic_beat(stage, classic.member_id, classic.generation + 7).error is ErrorCode.ILLEGAL_GENERATION
    assert classic_sync(stage, classic.member_id, classic.generation, []).error is ErrorCode.REBALANCE_IN_PROGRESS
    other = classic_join(stage, "x", b"\0\0", protocol_type="connect")
    assert other.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    foreign = classic_join(stage, "x", classic.subscription, protocols=["mine"])
    assert foreign.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_consumer_that_comes_back_classic_takes_the_group_back(stage: ConsumerStage) -> None:
    classic = classic_group_of_one(stage)
    consumer = stage.joined("new", ["t"], instance_id="i")
    classic.follow(shall_own=2)
    consumer.beat()
    consumer.leave(-2)
    back = ClassicConsumer(stage, instance_id="i")
    waiting = back.join()
    assert isinstance(stage.shard.groups.get(GROUP), ClassicGroup)
    assert waiting.waits
    again = classic.join()
    classic.joined(again, assigns={"t": [0, 1, 2, 3]})
    assert waiting.answer.error_code == ErrorCode.NONE
    replays_as_it_is(stage)


def test_a_classic_join_takes_an_empty_consumer_groups_place(stage: ConsumerStage) -> None:
    stage.joined("new", ["t"]).leave()
    classic_group_of_one(stage)
    assert isinstance(stage.shard.groups.get(GROUP), ClassicGroup)
    replays_as_it_is(stage)


def test_administrators_remove_members_by_instance_with_leave_group(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"], instance_id="i")
    b = stage.joined("b", ["t"])
    left = classic_leave(stage, "", instance_id="i")
    assert [each.error_code for each in left.answer.members] == [ErrorCode.NONE]
    assert classic_leave(stage, "", instance_id="j").answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    stage.settle(b)
    assert len(b.owns) == 4


@pytest.mark.parametrize("told_to", ["join", "sync"])
def test_a_member_that_changes_to_the_consumer_protocol_leaves_its_classic_deadlines_behind(
    stage: ConsumerStage, told_to: str
) -> None:
    classic = classic_group_of_one(stage, instance_id="i")
    other = stage.joined("new", ["t"])
    if told_to == "join":
        assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    else:
        assert classic.join().answer.error_code == ErrorCode.NONE
    changed = stage.joined(classic.member_id, ["t"], instance_id="i")
    for _ in range(40):
        stage.advance(1000)
        assert not isinstance(changed.beat(), ErrorCode)
        assert not isinstance(other.beat(), ErrorCode)
    assert len(changed.owns) == len(other.owns) == 2
