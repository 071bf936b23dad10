"""Requests about groups, their members and offsets."""

from typing import Final

from kavka.broker.security.acl import Operation
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.delete_groups import DeleteGroupsRequest
from kavka.protocol.messages.describe_groups import DescribeGroupsRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.list_groups import ListGroupsRequest
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.integration.oracle.rights.table import NO_GROUP, TOO, Names, cluster, group, row, topic, transaction

STRANGER: Final = "a-member-of-none"
WITH_OPERATIONS: Final = 3
MANY_LEAVE_SINCE: Final = 3
PROTOCOL_SINCE: Final = 5
GROUPS_SINCE: Final = 8
KEYS_SINCE: Final = 4
GROUPS: Final = 0
TRANSACTIONS: Final = 1
SHARES: Final = 2


@row(ApiKey.OFFSET_COMMIT, group(Operation.READ) + topic(Operation.READ), versions="1-9")
def offset_commit(version: int, names: Names) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=None)
        for index in (0, 7)
    ]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in (names.topic, TOO)]
    return OffsetCommitRequest(group_id=names.group, topics=topics)


@row(ApiKey.OFFSET_FETCH, group(Operation.DESCRIBE) + topic(Operation.DESCRIBE), versions="1-9")
def offset_fetch(version: int, names: Names) -> OffsetFetchRequest:
    return _offset_fetch(version, names.group, [names.topic, TOO])


@row(ApiKey.OFFSET_FETCH, group(Operation.DESCRIBE) + topic(Operation.DESCRIBE), versions="2-9")
def offset_fetch_of_all_topics(version: int, names: Names) -> OffsetFetchRequest:
    return _offset_fetch(version, names.group, None)


@row(ApiKey.OFFSET_DELETE, group(Operation.DELETE) + topic(Operation.READ))
def offset_delete(version: int, names: Names) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(partition_index=7)]
    return OffsetDeleteRequest(
        group_id=names.group,
        topics=[OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in (names.topic, TOO)],
    )


@row(ApiKey.FIND_COORDINATOR, group(Operation.DESCRIBE))
def find_coordinator(version: int, names: Names) -> FindCoordinatorRequest:
    return _find(version, GROUPS, names.group)


@row(ApiKey.FIND_COORDINATOR, transaction(Operation.DESCRIBE), versions="1-99")
def find_coordinator_of_a_transaction(version: int, names: Names) -> FindCoordinatorRequest:
    return _find(version, TRANSACTIONS, names.transaction)


@row(ApiKey.FIND_COORDINATOR, cluster(Operation.CLUSTER_ACTION), group(Operation.DESCRIBE), versions="5-99")
def find_coordinator_of_shares(version: int, names: Names) -> FindCoordinatorRequest:
    return _find(version, SHARES, names.group)


@row(ApiKey.JOIN_GROUP, group(Operation.READ))
def join_group(version: int, names: Names) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=names.group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000 if version else -1,
        member_id=STRANGER,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


@row(ApiKey.HEARTBEAT, group(Operation.READ))
def heartbeat(version: int, names: Names) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=names.group, generation_id=1, member_id=STRANGER)


@row(ApiKey.LEAVE_GROUP, group(Operation.READ))
def leave_group(version: int, names: Names) -> LeaveGroupRequest:
    if version >= MANY_LEAVE_SINCE:
        return LeaveGroupRequest(group_id=names.group, members=[MemberIdentity(member_id=STRANGER)])
    return LeaveGroupRequest(group_id=names.group, member_id=STRANGER)


@row(ApiKey.SYNC_GROUP, group(Operation.READ))
def sync_group(version: int, names: Names) -> SyncGroupRequest:
    request = SyncGroupRequest(group_id=names.group, generation_id=1, member_id=STRANGER, assignments=[])
    if version >= PROTOCOL_SINCE:
        request.protocol_type, request.protocol_name = "consumer", "range"
    return request


@row(ApiKey.SYNC_GROUP, group(Operation.READ), versions="5-99")
def sync_group_without_a_protocol(version: int, names: Names) -> SyncGroupRequest:
    return SyncGroupRequest(group_id=names.group, generation_id=1, member_id=STRANGER, assignments=[])


@row(ApiKey.DESCRIBE_GROUPS, group(Operation.DESCRIBE), versions="0-5")
def describe_groups(version: int, names: Names) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(
        groups=[names.group, NO_GROUP], include_authorized_operations=version >= WITH_OPERATIONS
    )


@row(ApiKey.LIST_GROUPS, group(Operation.DESCRIBE), cluster(Operation.DESCRIBE))
def list_groups(version: int, names: Names) -> ListGroupsRequest:
    return ListGroupsRequest()


@row(ApiKey.DELETE_GROUPS, group(Operation.DELETE, NO_GROUP))
def delete_groups(version: int, names: Names) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[NO_GROUP, NO_GROUP + "-2", NO_GROUP])


def _offset_fetch(version: int, group_id: str, topics: list[str] | None) -> OffsetFetchRequest:
    if version >= GROUPS_SINCE:
        asked = (
            None if topics is None else [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
        )
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=asked)])
    old = None if topics is None else [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in topics]
    return OffsetFetchRequest(group_id=group_id, topics=old)


def _find(version: int, key_type: int, key: str) -> FindCoordinatorRequest:
    if version >= KEYS_SINCE:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    return FindCoordinatorRequest(key_type=key_type, key=key)
