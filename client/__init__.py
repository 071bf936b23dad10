"""Talking to brokers: connections, requests and their answers; producers, consumers and administrators.

All that users of the three clients name is found here, the errors excepted, which are in `kavka.client.api_errors`.
It is loaded when it is first asked for: a broker, which needs the network alone, loads none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kavka.client.backoff import ExponentialBackoff
from kavka.client.call import RequestBuilder
from kavka.client.errors import (
    AnswerTimeoutError,
    BadAnswerError,
    ClientError,
    DisconnectedError,
    UnsupportedVersionError,
)
from kavka.client.metadata_port import MetadataPort
from kavka.client.network_client import NetworkClient
from kavka.client.node import Node
from kavka.client.settings import ClientSettings

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.client.admin import (
        AbortTransactionSpec as AbortTransactionSpec,
    )
    from kavka.client.admin import (
        AclBinding as AclBinding,
    )
    from kavka.client.admin import (
        AclBindingFilter as AclBindingFilter,
    )
    from kavka.client.admin import (
        AclOperation as AclOperation,
    )
    from kavka.client.admin import (
        AclPermissionType as AclPermissionType,
    )
    from kavka.client.admin import (
        Admin as Admin,
    )
    from kavka.client.admin import (
        AlterConfigOp as AlterConfigOp,
    )
    from kavka.client.admin import (
        AlterConfigOpType as AlterConfigOpType,
    )
    from kavka.client.admin import (
        ClassicGroupDescription as ClassicGroupDescription,
    )
    from kavka.client.admin import (
        ClassicMember as ClassicMember,
    )
    from kavka.client.admin import (
        ClientQuotaEntity as ClientQuotaEntity,
    )
    from kavka.client.admin import (
        ClusterDescription as ClusterDescription,
    )
    from kavka.client.admin import (
        ConfigEntry as ConfigEntry,
    )
    from kavka.client.admin import (
        ConfigResource as ConfigResource,
    )
    from kavka.client.admin import (
        ConfigResourceType as ConfigResourceType,
    )
    from kavka.client.admin import (
        ConfigSource as ConfigSource,
    )
    from kavka.client.admin import (
        ConfigSynonym as ConfigSynonym,
    )
    from kavka.client.admin import (
        ConfigType as ConfigType,
    )
    from kavka.client.admin import (
        ConsumerGroupDescription as ConsumerGroupDescription,
    )
    from kavka.client.admin import (
        DelegationToken as DelegationToken,
    )
    from kavka.client.admin import (
        DeletedAcl as DeletedAcl,
    )
    from kavka.client.admin import (
        ElectionType as ElectionType,
    )
    from kavka.client.admin import (
        FeatureMetadata as FeatureMetadata,
    )
    from kavka.client.admin import (
        FeatureUpdate as FeatureUpdate,
    )
    from kavka.client.admin import (
        FencedProducer as FencedProducer,
    )
    from kavka.client.admin import (
        GroupListing as GroupListing,
    )
    from kavka.client.admin import (
        GroupState as GroupState,
    )
    from kavka.client.admin import (
        GroupTransition as GroupTransition,
    )
    from kavka.client.admin import (
        GroupType as GroupType,
    )
    from kavka.client.admin import (
        IsolationLevel as IsolationLevel,
    )
    from kavka.client.admin import (
        ItemErrors as ItemErrors,
    )
    from kavka.client.admin import (
        KafkaPrincipal as KafkaPrincipal,
    )
    from kavka.client.admin import (
        ListOffsetsResultInfo as ListOffsetsResultInfo,
    )
    from kavka.client.admin import (
        LogDirDescription as LogDirDescription,
    )
    from kavka.client.admin import (
        MemberDescription as MemberDescription,
    )
    from kavka.client.admin import (
        MemberToRemove as MemberToRemove,
    )
    from kavka.client.admin import (
        NewPartitions as NewPartitions,
    )
    from kavka.client.admin import (
        NewTopic as NewTopic,
    )
    from kavka.client.admin import (
        OffsetAndMetadata as OffsetAndMetadata,
    )
    from kavka.client.admin import (
        OffsetSpec as OffsetSpec,
    )
    from kavka.client.admin import (
        PartitionReassignment as PartitionReassignment,
    )
    from kavka.client.admin import (
        PatternType as PatternType,
    )
    from kavka.client.admin import (
        ProducerState as ProducerState,
    )
    from kavka.client.admin import (
        QuorumInfo as QuorumInfo,
    )
    from kavka.client.admin import (
        QuotaFilter as QuotaFilter,
    )
    from kavka.client.admin import (
        QuotaMatch as QuotaMatch,
    )
    from kavka.client.admin import (
        RaftVoterEndpoint as RaftVoterEndpoint,
    )
    from kavka.client.admin import (
        ReplicaInfo as ReplicaInfo,
    )
    from kavka.client.admin import (
        ReplicaLogDirInfo as ReplicaLogDirInfo,
    )
    from kavka.client.admin import (
        ReplicaState as ReplicaState,
    )
    from kavka.client.admin import (
        ResourceType as ResourceType,
    )
    from kavka.client.admin import (
        ScramCredentialInfo as ScramCredentialInfo,
    )
    from kavka.client.admin import (
        ScramMechanism as ScramMechanism,
    )
    from kavka.client.admin import (
        ShareGroupDescription as ShareGroupDescription,
    )
    from kavka.client.admin import (
        ShareMemberDescription as ShareMemberDescription,
    )
    from kavka.client.admin import (
        SharePartitionOffsetInfo as SharePartitionOffsetInfo,
    )
    from kavka.client.admin import (
        StreamsGroupDescription as StreamsGroupDescription,
    )
    from kavka.client.admin import (
        StreamsGroupMemberAssignment as StreamsGroupMemberAssignment,
    )
    from kavka.client.admin import (
        StreamsGroupMemberDescription as StreamsGroupMemberDescription,
    )
    from kavka.client.admin import (
        StreamsGroupSubtopologyDescription as StreamsGroupSubtopologyDescription,
    )
    from kavka.client.admin import (
        StreamsTopic as StreamsTopic,
    )
    from kavka.client.admin import (
        TopicDescription as TopicDescription,
    )
    from kavka.client.admin import (
        TopicListing as TopicListing,
    )
    from kavka.client.admin import (
        TopicMetadataAndConfig as TopicMetadataAndConfig,
    )
    from kavka.client.admin import (
        TopicPartition as TopicPartition,
    )
    from kavka.client.admin import (
        TopicPartitionInfo as TopicPartitionInfo,
    )
    from kavka.client.admin import (
        TopicPartitionReplica as TopicPartitionReplica,
    )
    from kavka.client.admin import (
        TransactionDescription as TransactionDescription,
    )
    from kavka.client.admin import (
        TransactionListing as TransactionListing,
    )
    from kavka.client.admin import (
        TransactionState as TransactionState,
    )
    from kavka.client.admin import (
        UpgradeType as UpgradeType,
    )
    from kavka.client.admin import (
        UserScramCredentialDeletion as UserScramCredentialDeletion,
    )
    from kavka.client.admin import (
        UserScramCredentialUpsertion as UserScramCredentialUpsertion,
    )
    from kavka.client.admin import (
        VersionSpan as VersionSpan,
    )
    from kavka.client.client_metrics import Metrics as Metrics
    from kavka.client.cluster import (
        Cluster as Cluster,
    )
    from kavka.client.cluster import (
        PartitionInfo as PartitionInfo,
    )
    from kavka.client.cluster import (
        TopicInfo as TopicInfo,
    )
    from kavka.client.consumer.columns import RecordColumns as RecordColumns
    from kavka.client.consumer.consumer import Consumer as Consumer
    from kavka.client.consumer.group.assignors.assignor import (
        Assignor as Assignor,
    )
    from kavka.client.consumer.group.assignors.assignor import (
        MemberAssignment as MemberAssignment,
    )
    from kavka.client.consumer.group.assignors.assignor import (
        MemberSubscription as MemberSubscription,
    )
    from kavka.client.consumer.group.assignors.assignor import (
        PartitionAssignor as PartitionAssignor,
    )
    from kavka.client.consumer.group.port import (
        ConsumerGroupMetadata as ConsumerGroupMetadata,
    )
    from kavka.client.consumer.group.port import (
        GroupMembershipOperation as GroupMembershipOperation,
    )
    from kavka.client.consumer.group.port import (
        RebalanceListener as RebalanceListener,
    )
    from kavka.client.consumer.group.port import (
        SubscriptionPattern as SubscriptionPattern,
    )
    from kavka.client.consumer.offset_lookup import OffsetAndTimestamp as OffsetAndTimestamp
    from kavka.client.consumer.records import (
        ConsumerRecord as ConsumerRecord,
    )
    from kavka.client.consumer.records import (
        ConsumerRecords as ConsumerRecords,
    )
    from kavka.client.interceptors import (
        ProducerInterceptor as ProducerInterceptor,
    )
    from kavka.client.interceptors import (
        ProducerRecord as ProducerRecord,
    )
    from kavka.client.producer.delivery import RecordMetadata as RecordMetadata
    from kavka.client.producer.partitioners import Partitioner as Partitioner
    from kavka.client.producer.producer import Producer as Producer
    from kavka.client.producer.send_future import SendFuture as SendFuture
    from kavka.client.serialization import (
        Deserializer as Deserializer,
    )
    from kavka.client.serialization import (
        Serializer as Serializer,
    )

_PLACES: Final = {
    "kavka.client.admin": (
        "AbortTransactionSpec AclBinding AclBindingFilter AclOperation AclPermissionType Admin AlterConfigOp "
        "AlterConfigOpType ClassicGroupDescription ClassicMember ClientQuotaEntity ClusterDescription "
        "ConfigEntry ConfigResource ConfigResourceType ConfigSource ConfigSynonym ConfigType "
        "ConsumerGroupDescription DelegationToken DeletedAcl ElectionType FeatureMetadata FeatureUpdate "
        "FencedProducer GroupListing GroupState GroupTransition GroupType IsolationLevel ItemErrors "
        "KafkaPrincipal "
        "ListOffsetsResultInfo LogDirDescription MemberDescription MemberToRemove NewPartitions NewTopic "
        "OffsetAndMetadata OffsetSpec PartitionReassignment PatternType ProducerState QuorumInfo QuotaFilter "
        "QuotaMatch RaftVoterEndpoint ReplicaInfo ReplicaLogDirInfo ReplicaState ResourceType "
        "ScramCredentialInfo ScramMechanism ShareGroupDescription ShareMemberDescription "
        "SharePartitionOffsetInfo StreamsGroupDescription StreamsGroupMemberAssignment "
        "StreamsGroupMemberDescription StreamsGroupSubtopologyDescription StreamsTopic TopicDescription "
        "TopicListing TopicMetadataAndConfig TopicPartition TopicPartitionInfo TopicPartitionReplica "
        "TransactionDescription TransactionListing TransactionState UpgradeType UserScramCredentialDeletion "
        "UserScramCredentialUpsertion VersionSpan"
    ),
    "kavka.client.client_metrics": "Metrics",
    "kavka.client.cluster": "Cluster PartitionInfo TopicInfo",
    "kavka.client.consumer.columns": "RecordColumns",
    "kavka.client.consumer.consumer": "Consumer",
    "kavka.client.consumer.group.assignors.assignor": "Assignor MemberAssignment MemberSubscription PartitionAssignor",
    "kavka.client.consumer.group.port": (
        "ConsumerGroupMetadata GroupMembershipOperation RebalanceListener SubscriptionPattern"
    ),
    "kavka.client.consumer.offset_lookup": "OffsetAndTimestamp",
    "kavka.client.consumer.records": "ConsumerRecord ConsumerRecords",
    "kavka.client.interceptors": "ProducerInterceptor ProducerRecord",
    "kavka.client.producer.delivery": "RecordMetadata",
    "kavka.client.producer.partitioners": "Partitioner",
    "kavka.client.producer.producer": "Producer",
    "kavka.client.producer.send_future": "SendFuture",
    "kavka.client.serialization": "Deserializer Serializer",
}
_LATER: Final = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it."""
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.client' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    """For those who look around: loaded or not."""
    return sorted({*globals(), *_LATER})


__all__ = [
    "Admin",
    "AnswerTimeoutError",
    "BadAnswerError",
    "ClientError",
    "ClientSettings",
    "Consumer",
    "DisconnectedError",
    "ExponentialBackoff",
    "MetadataPort",
    "NetworkClient",
    "Node",
    "Producer",
    "RequestBuilder",
    "UnsupportedVersionError",
]
