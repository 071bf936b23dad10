"""Groups and their offsets: fan-out, fallbacks between protocols and versions, what answers leave out."""

import pytest

from kavka.client.admin.areas.group_offsets import GroupOffsetsArea
from kavka.client.admin.areas.groups import GroupsArea
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.admin.types.groups import GroupListing, GroupState, GroupTransition, GroupType, MemberToRemove
from kavka.client.api_errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    UnknownMemberIdError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.internal.consumer_protocol import ConsumerProtocolAssignment, encode_assignment
from kavka.protocol.internal.consumer_protocol import TopicPartition as AssignedTopic
from kavka.protocol.messages import consumer_group_describe as consumer
from kavka.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kavka.protocol.messages.describe_groups import GroupTransition as WireTransition
from kavka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from kavka.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.support.admin_stage import SILENCE, AdminStage, Said, in_turn, nodes_of

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)


def listing(group_id: str) -> GroupListing:
    return GroupListing(group_id, GroupType.CLASSIC, "consumer", GroupState.STABLE)


def listed(*group_ids: str, code: int = 0) -> ListGroupsResponse:
    rows = [
        ListedGroup(group_id=each, protocol_type="consumer", group_state="Stable", group_type="classic")
        for each in group_ids
    ]
    return ListGroupsResponse(error_code=code, groups=rows)


def classic(group_id: str, code: int = 0, *, state: str = "Stable", assignment: bytes | None = None) -> DescribedGroup:
    if assignment is None:
        assignment = encode_assignment(
            ConsumerProtocolAssignment(assigned_partitions=[AssignedTopic(topic="t", partitions=[0, 1])])
        )
    member = DescribedGroupMember(
        member_id="m",
        group_instance_id="static",
        client_id="c",
        client_host="/h",
        member_metadata=b"",
        member_assignment=assignment,
    )
    return DescribedGroup(
        error_code=code,
        group_id=group_id,
        group_state=state,
        protocol_type="consumer",
        protocol_data="range",
        members=[] if state in ("Empty", "Dead") or code else [member],
    )


def new_group(group_id: str, code: int = 0) -> consumer.DescribedGroup:
    mine = consumer.Assignment(
        topic_partitions=[consumer.TopicPartitions(topic_id=bytes(16), topic_name="t", partitions=[1])]
    )
    member = consumer.Member(
        member_id="m",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        assignment=mine,
        target_assignment=mine,
        member_type=1,
    )
    return consumer.DescribedGroup(
        error_code=code,
        group_id=group_id,
        group_state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        assignor_name="uniform",
        members=[] if code else [member],
    )


def test_all_brokers_are_asked_for_their_groups() -> None:
    stage = AdminStage()
    stage.network.answer(ListGroupsRequest, lambda node, _: {1: listed("a"), 2: listed("b", "a"), 3: listed()}[node.id])

    groups = stage.area(GroupsArea).list_groups(states=[GroupState.STABLE], types=[GroupType.CLASSIC])

    assert groups == [listing("a"), listing("b")]
    asked = stage.network.requests(ListGroupsRequest)
    assert sorted(nodes_of(asked)) == [1, 2, 3]
    assert asked[0].request.states_filter == ["Stable"]
    assert asked[0].request.types_filter == ["Classic"]


def test_a_broker_that_is_loading_its_groups_is_waited_for() -> None:
    stage = AdminStage()
    stage.network.answer(ListGroupsRequest, in_turn(listed(code=14), listed("a")))

    assert stage.area(GroupsArea).list_groups(protocol_types=["consumer"]) == [listing("a")]
    assert stage.area(GroupsArea).list_groups(protocol_types=["connect"]) == []


def test_a_broker_that_says_nothing_leaves_what_the_others_said() -> None:
    stage = AdminStage()
    stage.network.answer(ListGroupsRequest, lambda node, _: SILENCE if node.id == 2 else listed(f"g{node.id}"))

    with pytest.raises(ItemErrors) as failed:
        stage.area(GroupsArea).list_groups(timeout_ms=3_000)

    assert failed.value.errors.keys() == {2}
    assert failed.value.results == {1: [listing("g1")], 3: [listing("g3")]}


def test_brokers_that_know_no_types_have_classic_groups_alone() -> None:
    stage = AdminStage()
    stage.network.versions = {broker: {ApiKey.LIST_GROUPS: (0, 4)} for broker in (1, 2, 3)}
    stage.network.answer(ListGroupsRequest, in_turn(listed("a")))
    area = stage.area(GroupsArea)

    assert [group.group_id for group in area.list_groups(types=[GroupType.CLASSIC])] == ["a"]
    with pytest.raises(ItemErrors) as failed:
        area.list_groups(types=[GroupType.CONSUMER])
    assert {type(error) for error in failed.value.errors.values()} == {UnsupportedVersionError}


def test_groups_of_both_protocols_are_described_with_their_coordinators() -> None:
    stage = AdminStage()
    stage.coordinators = {"new": 2, "old": 3, "none": 3}

    def by_new_protocol(_node: Node, request: consumer.ConsumerGroupDescribeRequest) -> Said:
        rows = [new_group(each, 0 if each == "new" else 69) for each in request.group_ids]
        return consumer.ConsumerGroupDescribeResponse(groups=rows)

    def by_classic(_node: Node, request: DescribeGroupsRequest) -> Said:
        rows = [classic(each, 69 if each == "none" else 0) for each in request.groups]
        return DescribeGroupsResponse(groups=rows)

    stage.network.answer(consumer.ConsumerGroupDescribeRequest, by_new_protocol)
    stage.network.answer(DescribeGroupsRequest, by_classic)

    with pytest.raises(ItemErrors) as failed:
        stage.area(GroupsArea).describe_consumer_groups(["new", "old", "none"])

    assert isinstance(failed.value.errors["none"], GroupIdNotFoundError)
    new, old = failed.value.results["new"], failed.value.results["old"]
    assert (new.type, new.coordinator.id, new.assignor, new.group_epoch) == (GroupType.CONSUMER, 2, "uniform", 3)
    assert (new.members[0].assignment, new.members[0].member_epoch, new.members[0].is_upgraded) == ((P1,), 3, True)
    assert (old.type, old.coordinator.id, old.assignor, old.group_epoch) == (GroupType.CLASSIC, 3, "range", None)
    assert (old.members[0].assignment, old.members[0].group_instance_id) == ((P0, P1), "static")


def test_history_is_asked_for_in_both_protocols_and_read() -> None:
    stage = AdminStage()
    moved = WireTransition(
        timestamp_ms=5, old_state="Stable", new_state="Odd", reason="r", epoch=7, member_count=2, begins_rebalance=True
    )
    asked = []

    def by_new_protocol(_node: Node, request: consumer.ConsumerGroupDescribeRequest) -> Said:
        asked.append(request.include_history)
        rows = [new_group(each, 0 if each == "new" else 69) for each in request.group_ids]
        rows[0].history = [moved] if request.include_history else []
        return consumer.ConsumerGroupDescribeResponse(groups=rows)

    def by_classic(_node: Node, request: DescribeGroupsRequest) -> Said:
        asked.append(request.include_history)
        (row,) = [classic(each) for each in request.groups]
        row.history = [moved] if request.include_history else []
        return DescribeGroupsResponse(groups=[row])

    stage.network.answer(consumer.ConsumerGroupDescribeRequest, by_new_protocol)
    stage.network.answer(DescribeGroupsRequest, by_classic)
    area = stage.area(GroupsArea)

    told = GroupTransition(5, GroupState.STABLE, GroupState.UNKNOWN, "r", 7, 2, True)
    with_history = area.describe_consumer_groups(["new", "old"], include_history=True)
    assert [each.history for each in with_history.values()] == [(told,), (told,)]
    assert area.describe_classic_groups(["old"], include_history=True)["old"].history == (told,)
    assert all(asked)
    asked.clear()
    assert [each.history for each in area.describe_consumer_groups(["new", "old"]).values()] == [(), ()]
    assert not any(asked)


@pytest.mark.parametrize("is_advertised", [True, False])
def test_a_broker_without_the_new_protocol_describes_classic_groups(is_advertised: bool) -> None:
    stage = AdminStage()
    if not is_advertised:
        stage.network.versions[1] = {ApiKey.CONSUMER_GROUP_DESCRIBE: None}
    refused = consumer.ConsumerGroupDescribeResponse(groups=[new_group("g", 35)])
    stage.network.answer(consumer.ConsumerGroupDescribeRequest, in_turn(refused))
    stage.network.answer(DescribeGroupsRequest, in_turn(DescribeGroupsResponse(groups=[classic("g")])))

    assert stage.area(GroupsArea).describe_consumer_groups(["g"])["g"].state is GroupState.STABLE


def test_a_dead_group_without_members_is_not_there() -> None:
    stage = AdminStage()
    answer = DescribeGroupsResponse(groups=[classic("g", state="Dead")])
    stage.network.answer(DescribeGroupsRequest, in_turn(answer))

    with pytest.raises(GroupIdNotFoundError):
        stage.area(GroupsArea).describe_classic_groups(["g"])


def test_an_assignment_that_makes_no_sense_is_an_error_of_its_group() -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.CONSUMER_GROUP_DESCRIBE: None}
    rows = [classic("good"), classic("bad", assignment=b"\x00\x01\xff")]
    stage.network.answer(DescribeGroupsRequest, in_turn(DescribeGroupsResponse(groups=rows)))

    with pytest.raises(ItemErrors) as failed:
        stage.area(GroupsArea).describe_consumer_groups(["good", "bad"])

    assert failed.value.results.keys() == {"good"}
    assert isinstance(failed.value.errors["bad"], UnknownServerError)


def test_members_are_removed_by_either_name_and_all_of_them_by_none() -> None:
    stage = AdminStage()

    def broker(_node: Node, request: LeaveGroupRequest) -> Said:
        rows = [
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=0)
            for each in request.members
        ]
        rows[-1].error_code = 25 if len(rows) > 1 else 0
        return LeaveGroupResponse(error_code=0, members=rows)

    stage.network.answer(LeaveGroupRequest, broker)
    stage.network.answer(DescribeGroupsRequest, in_turn(DescribeGroupsResponse(groups=[classic("g")])))
    area = stage.area(GroupsArea)
    static, dynamic = MemberToRemove("static"), MemberToRemove(member_id="m-1")

    with pytest.raises(ItemErrors) as failed:
        area.remove_group_members("g", [static, dynamic], reason="enough")
    assert failed.value.results == {static: None}
    assert isinstance(failed.value.errors[dynamic], UnknownMemberIdError)
    assert stage.network.requests(LeaveGroupRequest)[0].request.members[0].reason == "enough"

    assert area.remove_group_members("g") == {static: None}


def stored(*offsets: int) -> list[OffsetFetchResponseTopics]:
    rows = [
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, committed_leader_epoch=4, metadata="m", error_code=0
        )
        for index, offset in enumerate(offsets)
    ]
    return [OffsetFetchResponseTopics(name="t", partitions=rows)]


def test_offsets_of_several_groups_are_asked_for_at_once_where_the_broker_can() -> None:
    stage = AdminStage()

    def broker(_node: Node, request: OffsetFetchRequest) -> Said:
        rows = [
            OffsetFetchResponseGroup(group_id=each.group_id, topics=stored(7, -1), error_code=0)
            for each in request.groups
        ]
        return OffsetFetchResponse(groups=rows, topics=[])

    stage.network.answer(OffsetFetchRequest, broker)

    found = stage.area(GroupOffsetsArea).list_group_offsets({"g": [P0, P1], "h": None}, require_stable=True)

    assert found == {"g": {P0: OffsetAndMetadata(7, 4, "m"), P1: None}, "h": {P0: OffsetAndMetadata(7, 4, "m")}}
    (asked,) = stage.network.requests(OffsetFetchRequest)
    assert asked.request.require_stable
    assert asked.version == 9


def test_offsets_of_several_groups_are_asked_for_one_by_one_of_an_older_broker() -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.OFFSET_FETCH: (0, 7)}
    rows = [OffsetFetchResponsePartition(partition_index=0, committed_offset=7, metadata=None, error_code=0)]
    answer = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=rows)], groups=[])
    stage.network.answer(OffsetFetchRequest, in_turn(answer))

    found = stage.area(GroupOffsetsArea).list_group_offsets({"g": None, "h": [P0, P1]})

    assert found == {"g": {P0: OffsetAndMetadata(7)}, "h": {P0: OffsetAndMetadata(7), P1: None}}
    assert [asked.request.group_id for asked in stage.network.requests(OffsetFetchRequest)] == ["g", "h"]


def test_offsets_that_are_not_stable_are_waited_for() -> None:
    stage = AdminStage()
    unstable, stable = (
        OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=stored(7), error_code=0)], topics=[])
        for _ in range(2)
    )
    unstable.groups[0].topics[0].partitions[0].error_code = 88
    stage.network.answer(OffsetFetchRequest, in_turn(unstable, stable))

    assert stage.area(GroupOffsetsArea).list_group_offsets({"g": None})["g"] == {P0: OffsetAndMetadata(7, 4, "m")}


def test_a_group_that_the_answer_leaves_out_has_failed() -> None:
    stage = AdminStage()
    stage.network.answer(OffsetFetchRequest, in_turn(OffsetFetchResponse(groups=[], topics=[])))

    with pytest.raises(UnknownServerError):
        stage.area(GroupOffsetsArea).list_group_offsets({"g": None})


def test_offsets_are_committed_for_nobody() -> None:
    stage = AdminStage()
    rows = [OffsetCommitResponsePartition(partition_index=index, error_code=0) for index in (0, 1)]
    answer = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=rows)])
    stage.network.answer(OffsetCommitRequest, in_turn(answer))

    assert stage.area(GroupOffsetsArea).alter_group_offsets("g", {P0: 5, P1: OffsetAndMetadata(6, 2, "m")}) == {
        P0: None,
        P1: None,
    }

    (asked,) = stage.network.requests(OffsetCommitRequest)
    assert (asked.request.member_id, asked.request.generation_id_or_member_epoch, asked.version) == ("", -1, 9)
    first, second = asked.request.topics[0].partitions
    assert (first.committed_offset, first.committed_leader_epoch, first.committed_metadata) == (5, -1, "")
    assert (second.committed_offset, second.committed_leader_epoch, second.committed_metadata) == (6, 2, "m")


def test_offsets_of_a_topic_that_is_read_are_not_forgotten() -> None:
    stage = AdminStage()
    rows = [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index, code in ((0, 86), (1, 0))]
    answer = OffsetDeleteResponse(error_code=0, topics=[OffsetDeleteResponseTopic(name="t", partitions=rows)])
    stage.network.answer(OffsetDeleteRequest, in_turn(answer))

    with pytest.raises(ItemErrors) as failed:
        stage.area(GroupOffsetsArea).delete_group_offsets("g", [P0, P1])
    assert isinstance(failed.value.errors[P0], GroupSubscribedToTopicError)

    stage.network.answer(OffsetDeleteRequest, in_turn(OffsetDeleteResponse(error_code=69, topics=[])))
    with pytest.raises(GroupIdNotFoundError):
        stage.area(GroupOffsetsArea).delete_group_offsets("g", [P0])
