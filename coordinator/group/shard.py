"""The state machine over one partition of `__consumer_offsets`: its groups and their committed offsets.

Every request about a group, and every record, passes here and goes on to the part it belongs to: offsets, groups of the
classic protocol, groups of the consumer protocol. A classic member's request goes where its group's type says.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.groups import ClassicGroups
from kavka.coordinator.group.consumer.groups import ConsumerGroups
from kavka.coordinator.group.group import GroupType
from kavka.coordinator.group.listing import GroupListing
from kavka.coordinator.group.offsets.commit import OffsetCommits
from kavka.coordinator.group.offsets.deletion import OffsetDeletions
from kavka.coordinator.group.offsets.fetch import OffsetFetches
from kavka.coordinator.group.offsets.store import OffsetStore
from kavka.coordinator.group.offsets.topic_deletion import TopicDeletions
from kavka.coordinator.group.table import GroupTable
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from kavka.coordinator.group.group import Client
    from kavka.coordinator.ports import ShardContext
    from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kavka.protocol.messages.heartbeat import HeartbeatRequest
    from kavka.protocol.messages.join_group import JoinGroupRequest
    from kavka.protocol.messages.leave_group import LeaveGroupRequest
    from kavka.protocol.messages.sync_group import SyncGroupRequest


class GroupShard:
    """Groups and offsets of one partition. All methods are called under the shard's lock.

    `groups` is shared with `classic` and `consumer`, which enter and remove groups of their own kind when they replay.
    """

    __slots__ = (
        "_context",
        "_deletions",
        "_topic_deletions",
        "classic",
        "commit",
        "consumer",
        "delete_groups",
        "delete_offsets",
        "describe_groups",
        "fetch",
        "groups",
        "list_groups",
        "offsets",
        "repeat_commit",
        "txn_commit",
    )

    def __init__(self, context: "ShardContext") -> None:
        self._context = context
        self.groups: Final = GroupTable()
        self.classic: Final = ClassicGroups(context, self.groups)
        self.consumer: Final = ConsumerGroups(context, self.groups, self.classic)
        self.offsets: Final = OffsetStore(self._topic_entered)
        self._deletions = OffsetDeletions(context, self.groups, self.offsets)
        self._topic_deletions = TopicDeletions(context, self.offsets, self._deletions)
        commits = OffsetCommits(context, self.groups)
        self.commit: Final = commits.commit
        """OffsetCommit; see `OffsetCommits.commit`."""
        self.repeat_commit: Final = commits.repeat
        """OffsetCommit, again; see `OffsetCommits.repeat`."""
        self.txn_commit: Final = commits.txn_commit
        """TxnOffsetCommit; see `OffsetCommits.txn_commit`."""
        self.fetch: Final = OffsetFetches(self.groups, self.offsets).fetch
        """OffsetFetch of one group; see `OffsetFetches.fetch`."""
        self.delete_offsets: Final = self._deletions.delete
        """OffsetDelete; see `OffsetDeletions.delete`."""
        listing = GroupListing(self.groups, self.classic, self._deletions)
        self.list_groups: Final = listing.list_groups
        """ListGroups; see `GroupListing`."""
        self.describe_groups: Final = listing.describe_groups
        self.delete_groups: Final = listing.delete_groups

    def join(self, request: "JoinGroupRequest", client: "Client", reply: Reply) -> Result:
        """A classic member joins; in a consumer group as one that is being migrated (KIP-848)."""
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_join(request, client, reply)
        return self.classic.join(request, client, reply)

    def sync(self, request: "SyncGroupRequest", client: "Client", reply: Reply) -> Result:
        """A classic member asks for its assignment."""
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_sync(request, client, reply)
        return self.classic.sync(request, client, reply)

    def heartbeat(self, request: "HeartbeatRequest", client: "Client", reply: Reply) -> Result:
        """A classic member is alive."""
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_heartbeat(request, client, reply)
        return self.classic.heartbeat(request, client, reply)

    def repeat_heartbeat(self, request: "HeartbeatRequest") -> ErrorCode | None:
        """As `heartbeat`, and answered by this; None in a consumer group, where it may take more."""
        return None if self._is_consumer_group(request.group_id) else self.classic.alive(request)

    def leave(self, request: "LeaveGroupRequest", client: "Client", reply: Reply) -> Result:
        """Classic members leave, or are removed by an administrator."""
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_leave(request, client, reply)
        return self.classic.leave(request, client, reply)

    def consumer_heartbeat(self, request: "ConsumerGroupHeartbeatRequest", client: "Client", reply: Reply) -> Result:
        """A member of the consumer protocol joins, is alive, or leaves."""
        return self.consumer.heartbeat(request, client, reply)

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        """See `ports.Shard`."""
        key = record.key
        if type(key) is OffsetCommitKey:
            value = record.value
            assert value is None or type(value) is OffsetCommitValue
            if value is not None and self.groups.get(key.group) is None:
                group = ClassicGroup(key.group, self._context)
                group.note("made by a commit without a generation")
                self.groups.put(group)
            self.offsets.replay(key, value, offset, producer)
        elif type(key) is GroupMetadataKey:
            metadata = record.value
            assert metadata is None or type(metadata) is GroupMetadataValue
            self.classic.replay(key, metadata)
        else:
            self.consumer.replay(record)

    def replay_end_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """See `ports.Shard`. Only offsets are ever written in a transaction."""
        self.offsets.replay_end_marker(producer_id, committed)

    def loaded(self) -> Result:
        """See `ports.Shard`."""
        self._topic_deletions.loaded()
        self._deletions.loaded()
        return in_turn(self.classic.loaded, self.consumer.loaded)

    def unloaded(self) -> Result:
        """See `ports.Shard`."""
        return Result((), [*self.classic.unloaded().replies, *self.consumer.unloaded().replies])

    def topics_changed(self) -> Result:
        """See `ports.Shard`."""
        return in_turn(self._topic_deletions.topics_changed, self.consumer.topics_changed)

    def _is_consumer_group(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        return group is not None and group.type is GroupType.CONSUMER

    def _topic_entered(self, topic: str) -> None:
        self._topic_deletions.topic_entered(topic)


def in_turn(decide: Callable[[], Result], *others: Callable[[], Result]) -> Result:
    """One decision after the other, each made when the records of those before stand, or could not be appended."""
    return _followed(decide(), others)


def _followed(result: Result | None, others: Sequence[Callable[[], Result]]) -> Result:
    if not others:
        return result or NOTHING
    if result is None or result is NOTHING:
        return in_turn(*others)

    def appended() -> Result:
        return _followed(result.appended() if result.appended is not None else None, others)

    def failed(error: BrokerError) -> Result:
        try:
            following = result.failed(error) if result.failed is not None else None
        except BrokerError:
            following = None
        return _followed(following, others)

    return Result(
        result.records,
        result.replies,
        replays=result.replays,
        appended=appended,
        failed=failed,
        producer=result.producer,
        guard=result.guard,
        reads_committed=result.reads_committed,
    )
