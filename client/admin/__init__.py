"""The administrator's client, and what its methods take and return.

Each is loaded when it is first asked for: a command that lists topics needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.client.admin.admin import Admin
    from kavka.client.admin.item_errors import ItemErrors
    from kavka.client.admin.types.acls import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        DeletedAcl,
        PatternType,
        ResourceType,
    )
    from kavka.client.admin.types.cluster import (
        ClusterDescription,
        FeatureMetadata,
        FeatureUpdate,
        QuorumInfo,
        RaftVoterEndpoint,
        ReplicaState,
        UpgradeType,
        VersionSpan,
    )
    from kavka.client.admin.types.configs import (
        AlterConfigOp,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
    )
    from kavka.client.admin.types.credentials import (
        DelegationToken,
        KafkaPrincipal,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from kavka.client.admin.types.groups import (
        ClassicGroupDescription,
        ClassicMember,
        ConsumerGroupDescription,
        GroupListing,
        GroupState,
        GroupTransition,
        GroupType,
        MemberDescription,
        MemberToRemove,
        ShareGroupDescription,
        ShareMemberDescription,
        SharePartitionOffsetInfo,
        StreamsGroupDescription,
        StreamsGroupMemberAssignment,
        StreamsGroupMemberDescription,
        StreamsGroupSubtopologyDescription,
        StreamsTopic,
    )
    from kavka.client.admin.types.log_dirs import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo
    from kavka.client.admin.types.quotas import ClientQuotaEntity, QuotaFilter, QuotaMatch
    from kavka.client.admin.types.topics import (
        ElectionType,
        IsolationLevel,
        ListOffsetsResultInfo,
        NewPartitions,
        NewTopic,
        OffsetSpec,
        PartitionReassignment,
        TopicDescription,
        TopicListing,
        TopicMetadataAndConfig,
        TopicPartitionInfo,
        TopicPartitionReplica,
    )
    from kavka.client.admin.types.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from kavka.client.consumer.group.port import OffsetAndMetadata
    from kavka.client.topic_partition import TopicPartition

_PLACES: Final = {
    "kavka.client.admin.admin": "Admin",
    "kavka.client.admin.item_errors": "ItemErrors",
    "kavka.client.admin.types.acls": (
        "AclBinding AclBindingFilter AclOperation AclPermissionType DeletedAcl PatternType ResourceType"
    ),
    "kavka.client.admin.types.cluster": (
        "ClusterDescription FeatureMetadata FeatureUpdate QuorumInfo RaftVoterEndpoint ReplicaState "
        "UpgradeType VersionSpan"
    ),
    "kavka.client.admin.types.configs": (
        "AlterConfigOp AlterConfigOpType ConfigEntry ConfigResource ConfigResourceType ConfigSource "
        "ConfigSynonym ConfigType"
    ),
    "kavka.client.admin.types.credentials": (
        "DelegationToken KafkaPrincipal ScramCredentialInfo ScramMechanism UserScramCredentialDeletion "
        "UserScramCredentialUpsertion"
    ),
    "kavka.client.admin.types.groups": (
        "ClassicGroupDescription ClassicMember ConsumerGroupDescription GroupListing GroupState "
        "GroupTransition GroupType MemberDescription MemberToRemove ShareGroupDescription "
        "ShareMemberDescription SharePartitionOffsetInfo StreamsGroupDescription "
        "StreamsGroupMemberAssignment StreamsGroupMemberDescription StreamsGroupSubtopologyDescription "
        "StreamsTopic"
    ),
    "kavka.client.admin.types.log_dirs": "LogDirDescription ReplicaInfo ReplicaLogDirInfo",
    "kavka.client.admin.types.quotas": "ClientQuotaEntity QuotaFilter QuotaMatch",
    "kavka.client.admin.types.topics": (
        "ElectionType IsolationLevel ListOffsetsResultInfo NewPartitions NewTopic OffsetSpec "
        "PartitionReassignment TopicDescription TopicListing TopicMetadataAndConfig TopicPartitionInfo "
        "TopicPartitionReplica"
    ),
    "kavka.client.admin.types.transactions": (
        "AbortTransactionSpec FencedProducer ProducerState TransactionDescription TransactionListing TransactionState"
    ),
    "kavka.client.consumer.group.port": "OffsetAndMetadata",
    "kavka.client.topic_partition": "TopicPartition",
}
_LATER: Final = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it."""
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.client.admin' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    """For those who look around: loaded or not."""
    return sorted({*globals(), *_LATER})


__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "ResourceType",
    "Admin",
    "AlterConfigOpType",
    "ClassicGroupDescription",
    "ClassicMember",
    "ClusterDescription",
    "AlterConfigOp",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConsumerGroupDescription",
    "TopicMetadataAndConfig",
    "DelegationToken",
    "DeletedAcl",
    "ElectionType",
    "FeatureMetadata",
    "FeatureUpdate",
    "FencedProducer",
    "GroupListing",
    "OffsetAndMetadata",
    "GroupState",
    "GroupTransition",
    "GroupType",
    "IsolationLevel",
    "ItemErrors",
    "ListOffsetsResultInfo",
    "LogDirDescription",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "TopicPartitionInfo",
    "PatternType",
    "KafkaPrincipal",
    "ProducerState",
    "QuorumInfo",
    "ReplicaState",
    "ClientQuotaEntity",
    "QuotaFilter",
    "QuotaMatch",
    "RaftVoterEndpoint",
    "PartitionReassignment",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "ScramCredentialInfo",
    "UserScramCredentialDeletion",
    "ScramMechanism",
    "UserScramCredentialUpsertion",
    "ShareGroupDescription",
    "SharePartitionOffsetInfo",
    "ShareMemberDescription",
    "StreamsGroupDescription",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsGroupMemberAssignment",
    "StreamsTopic",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "AbortTransactionSpec",
    "UpgradeType",
    "VersionSpan",
]
