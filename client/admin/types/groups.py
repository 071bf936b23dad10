"""Groups of consumers, of all protocols. What they have committed is the consumer's own `OffsetAndMetadata`."""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from kavka.client.admin.types.acls import AclOperation
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition


class _Name(enum.StrEnum):
    """A name that brokers send, in any case; one that is not known here is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> "_Name":
        wanted = str(value).lower()
        return next((name for name in cls if name.value.lower() == wanted), cls("Unknown"))


class GroupType(_Name):
    """Which protocol a group has.

    print(admin.list_groups(types=[GroupType.CLASSIC]))
    """

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    """KIP-848."""
    SHARE = "Share"
    STREAMS = "Streams"


class GroupState(_Name):
    """How a group is; which of them there are depends on its type.

    for group in admin.list_groups(states=[GroupState.EMPTY]):
        print(group.group_id, "has no members")
    """

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupListing(NamedTuple):
    """A group that is there. `protocol_type` is "consumer" for consumers, "" for offsets without members.

    Type and state are UNKNOWN where brokers do not tell (before 3.7, before 2.6).

        for group in admin.list_groups(protocol_types=["consumer"]):
            print(group.group_id, group.type, group.state)
    """

    group_id: str
    type: GroupType
    protocol_type: str
    state: GroupState


class GroupTransition(NamedTuple):
    """What happened to a group at a time, and why, as its coordinator remembers it since it began to be that.

    `epoch` is the generation of a classic group, the epoch of KIP-848's; `member_count` how many members it had then.
    With one that `begins_rebalance` members get new assignments; others follow it, or tell of who is late.

        billing = admin.describe_consumer_groups(["billing"], include_history=True)["billing"]
        for each in billing.history:
            print(each.timestamp_ms, each.old_state, each.new_state, each.reason)
    """

    timestamp_ms: int
    old_state: GroupState
    new_state: GroupState
    reason: str
    epoch: int
    member_count: int
    begins_rebalance: bool


class MemberDescription(NamedTuple):
    """A member of a group of consumers.

    Epoch, target and subscription are those of KIP-848, None or empty in classic groups. `is_upgraded` is False for a
    classic member in such a group, None where it is not known.

        for member in admin.describe_consumer_groups(["billing"])["billing"].members:
            print(member.client_id, member.host, member.assignment)
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    rack_id: str | None = None
    member_epoch: int | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_pattern: str | None = None
    is_upgraded: bool | None = None


class ConsumerGroupDescription(NamedTuple):
    """A group of consumers, of the classic protocol or of KIP-848 (then it has epochs).

    `history`, oldest first, is empty unless it was asked for, and of brokers that are not Kavka.

    billing = admin.describe_consumer_groups(["billing"])["billing"]
    print(billing.state, billing.assignor, len(billing.members))
    """

    group_id: str
    type: GroupType
    state: GroupState
    assignor: str
    members: tuple[MemberDescription, ...]
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None
    history: tuple[GroupTransition, ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether it is not consumers' protocol that keeps it, but commits alone."""
        return self.type is GroupType.CLASSIC and not self.assignor and not self.members


class ClassicMember(NamedTuple):
    """A member of a classic group of any kind; the bytes mean what its protocol type says.

    for member in admin.describe_classic_groups(["billing"])["billing"].members:
        print(member.member_id, len(member.assignment))
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


class ClassicGroupDescription(NamedTuple):
    """A classic group of any kind: of consumers, Kafka Connect's workers, schema registries.

    `history`, oldest first, is empty unless it was asked for, and of brokers that are not Kavka.

    billing = admin.describe_classic_groups(["billing"])["billing"]
    print(billing.protocol_type, billing.state)
    """

    group_id: str
    protocol_type: str
    protocol: str
    state: GroupState
    members: tuple[ClassicMember, ...]
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None
    history: tuple[GroupTransition, ...] = ()


class ShareMemberDescription(NamedTuple):
    """A member of a share group (KIP-932).

    for member in admin.describe_share_groups(["shared"])["shared"].members:
        print(member.client_id, member.assignment)
    """

    member_id: str
    rack_id: str | None
    client_id: str
    host: str
    member_epoch: int
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


class ShareGroupDescription(NamedTuple):
    """A share group.

    print(admin.describe_share_groups(["shared"])["shared"].state)
    """

    group_id: str
    state: GroupState
    members: tuple[ShareMemberDescription, ...]
    coordinator: Node
    group_epoch: int
    target_assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None


class StreamsGroupMemberAssignment(NamedTuple):
    """Tasks of a Streams member: partitions by subtopology.

    for member in admin.describe_streams_groups(["counting"])["counting"].members:
        print(member.assignment.active)
    """

    active: Mapping[str, tuple[int, ...]]
    standby: Mapping[str, tuple[int, ...]]
    warmup: Mapping[str, tuple[int, ...]]


class StreamsGroupMemberDescription(NamedTuple):
    """A member of a Streams group (KIP-1071). The offsets are those of its tasks, by subtopology and partition.

    for member in admin.describe_streams_groups(["counting"])["counting"].members:
        print(member.process_id, member.task_offsets)
    """

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    member_epoch: int
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: Mapping[str, str]
    task_offsets: Mapping[tuple[str, int], int]
    task_end_offsets: Mapping[tuple[str, int], int]
    assignment: StreamsGroupMemberAssignment
    target_assignment: StreamsGroupMemberAssignment
    is_classic: bool


class StreamsTopic(NamedTuple):
    """A topic that Streams makes for itself.

    for part in admin.describe_streams_groups(["counting"])["counting"].subtopologies or ():
        print([topic.name for topic in part.state_changelog_topics])
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class StreamsGroupSubtopologyDescription(NamedTuple):
    """A part of a topology whose tasks go together.

    for part in admin.describe_streams_groups(["counting"])["counting"].subtopologies or ():
        print(part.subtopology_id, part.source_topics)
    """

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopic, ...]
    repartition_source_topics: tuple[StreamsTopic, ...]


class StreamsGroupDescription(NamedTuple):
    """A group of Kafka Streams; `subtopologies` is None until its members have told.

    print(admin.describe_streams_groups(["counting"])["counting"].topology_epoch)
    """

    group_id: str
    state: GroupState
    members: tuple[StreamsGroupMemberDescription, ...]
    coordinator: Node
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[StreamsGroupSubtopologyDescription, ...] | None
    authorized_operations: frozenset[AclOperation] | None


class MemberToRemove(NamedTuple):
    """A member that is to leave: a static one by its instance id, or any by its member id.

    MemberToRemove(group_instance_id="worker-1")
    """

    group_instance_id: str | None = None
    member_id: str = ""


class SharePartitionOffsetInfo(NamedTuple):
    """Where a share group's records in flight begin; `lag` is -1 where brokers do not tell (before 4.2).

    for partition, found in admin.list_share_group_offsets({"shared": None})["shared"].items():
        print(partition, found.start_offset, found.lag)
    """

    start_offset: int
    leader_epoch: int
    lag: int
