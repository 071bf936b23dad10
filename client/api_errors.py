"""All that clients raise: a class for each of the protocol's error codes (`error_of(code)`), and the clients' own.

Loaded by clients alone: what brokers use of `client/` gets along with `errors`. The clients' own errors are where they
are raised, and loaded from there when somebody names them here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kavka.client.api_errors_cluster import (
    BrokerIdNotRegisteredError,
    BrokerNotAvailableError,
    ClusterAuthorizationError,
    ControllerMovedError,
    DelegationTokenAuthorizationError,
    DelegationTokenDisabledError,
    DelegationTokenExpiredError,
    DelegationTokenNotFoundError,
    DelegationTokenOwnerMismatchError,
    DelegationTokenRequestNotAllowedError,
    DuplicateBrokerRegistrationError,
    DuplicateResourceError,
    DuplicateVoterError,
    FeatureUpdateFailedError,
    IllegalSaslStateError,
    InconsistentClusterIdError,
    InconsistentVoterSetError,
    IneligibleReplicaError,
    InvalidConfigurationError,
    InvalidPrincipalTypeError,
    InvalidRegistrationError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    InvalidVoterKeyError,
    MismatchedEndpointTypeError,
    NotControllerError,
    OperationNotAttemptedError,
    PolicyViolationError,
    PrincipalDeserializationError,
    RebootstrapRequiredError,
    ResourceNotFoundError,
    SaslAuthenticationError,
    SecurityDisabledError,
    SnapshotNotFoundError,
    StaleBrokerEpochError,
    TelemetryTooLargeError,
    ThrottlingQuotaExceededError,
    UnacceptableCredentialError,
    UnknownControllerIdError,
    UnknownServerError,
    UnknownSubscriptionIdError,
    UnsupportedEndpointTypeError,
    UnsupportedSaslMechanismError,
    VoterNotFoundError,
)
from kavka.client.api_errors_groups import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    DuplicateSequenceError,
    FencedInstanceIdError,
    FencedMemberEpochError,
    FencedStateEpochError,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidCommitOffsetSizeError,
    InvalidGroupIdError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidRecordStateError,
    InvalidRegularExpressionError,
    InvalidSessionTimeoutError,
    InvalidShareSessionEpochError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    NotCoordinatorError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RebalanceInProgressError,
    ShareSessionLimitReachedError,
    ShareSessionNotFoundError,
    StaleMemberEpochError,
    StreamsInvalidTopologyEpochError,
    StreamsInvalidTopologyError,
    StreamsTopologyFencedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionalIdNotFoundError,
    TransactionCoordinatorFencedError,
    UnknownMemberIdError,
    UnknownProducerIdError,
    UnreleasedInstanceIdError,
    UnstableOffsetCommitError,
    UnsupportedAssignorError,
)
from kavka.client.api_errors_records import (
    CorruptRecordError,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    FencedLeaderEpochError,
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InconsistentTopicIdError,
    InvalidFetchSessionEpochError,
    InvalidFetchSizeError,
    InvalidPartitionsError,
    InvalidRecordError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaStorageError,
    LeaderNotAvailableError,
    ListenerNotFoundError,
    LogDirNotFoundError,
    NewLeaderElectedError,
    NoReassignmentInProgressError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetMetadataTooLargeError,
    OffsetMovedToTieredStorageError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    PositionOutOfRangeError,
    PreferredLeaderNotAvailableError,
    ReassignmentInProgressError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    ReplicaNotAvailableError,
    TopicAuthorizationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
)
from kavka.client.errors import (
    AnswerTimeoutError,
    BadAnswerError,
    ClientClosedError,
    ClientDiedError,
    ClientError,
    DisconnectedError,
    NetworkError,
    SslAuthenticationError,
    UnsupportedVersionError,
    UsedAfterForkError,
)
from kavka.client.kafka_error import (
    ERROR_CLASSES,
    AbortableError,
    AuthenticationError,
    AuthorizationError,
    FatalError,
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
)

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.client.admin.item_errors import ItemErrors as ItemErrors
    from kavka.client.consumer.errors import ConcurrentUseError as ConcurrentUseError
    from kavka.client.consumer.errors import CorruptBatchReadError as CorruptBatchReadError
    from kavka.client.consumer.errors import FetchOutOfRangeError as FetchOutOfRangeError
    from kavka.client.consumer.errors import FetchTooSmallError as FetchTooSmallError
    from kavka.client.consumer.errors import InvalidOffsetError as InvalidOffsetError
    from kavka.client.consumer.errors import LogTruncationError as LogTruncationError
    from kavka.client.consumer.errors import NoOffsetForPartitionError as NoOffsetForPartitionError
    from kavka.client.consumer.errors import RecordDeserializationError as RecordDeserializationError
    from kavka.client.consumer.errors import WakeupError as WakeupError
    from kavka.client.consumer.group.errors import CommitFailedError as CommitFailedError
    from kavka.client.consumer.group.errors import RetriableCommitFailedError as RetriableCommitFailedError
    from kavka.client.consumer.subscription import NotAssignedError as NotAssignedError
    from kavka.client.producer.errors import BufferExhaustedError as BufferExhaustedError
    from kavka.client.producer.errors import FailedToSendMessageError as FailedToSendMessageError
    from kavka.client.producer.errors import QueueFullError as QueueFullError
    from kavka.client.producer.errors import TransactionAbortedError as TransactionAbortedError
    from kavka.client.producer.errors import TransactionStateError as TransactionStateError
    from kavka.client.serialization import SerializationError as SerializationError
    from kavka.config.errors import ConfigError as ConfigError

_PLACES: Final = {
    "kavka.client.admin.item_errors": "ItemErrors",
    "kavka.client.consumer.errors": (
        "ConcurrentUseError CorruptBatchReadError FetchOutOfRangeError FetchTooSmallError "
        "InvalidOffsetError LogTruncationError NoOffsetForPartitionError RecordDeserializationError "
        "WakeupError"
    ),
    "kavka.client.consumer.group.errors": "CommitFailedError RetriableCommitFailedError",
    "kavka.client.consumer.subscription": "NotAssignedError",
    "kavka.client.producer.errors": (
        "BufferExhaustedError FailedToSendMessageError QueueFullError TransactionAbortedError TransactionStateError"
    ),
    "kavka.client.serialization": "SerializationError",
    "kavka.config.errors": "ConfigError",
}
_OF_CLIENTS: Final = {name: place for place, names in _PLACES.items() for name in names.split()}


def error_of(code: int, message: str | None = None) -> KafkaError:
    """The exception for an error code of the protocol other than 0; `message` is the broker's own, where it sent one.

    A code that is not known here is an UnknownServerError, whose `code` is that code.
    """
    error_class = ERROR_CLASSES.get(code)
    if error_class is not None:
        return error_class(message)
    error = UnknownServerError(message or f"The broker's error {code}, which is not known here.")
    error.code = code
    return error


def __getattr__(name: str) -> Any:
    """An error of a client's own."""
    place = _OF_CLIENTS.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.client.api_errors' has no attribute {name!r}")
    return getattr(import_module(place), name)


__all__ = [
    "AbortableError",
    "AnswerTimeoutError",
    "AuthenticationError",
    "AuthorizationError",
    "BadAnswerError",
    "BrokerIdNotRegisteredError",
    "BrokerNotAvailableError",
    "ClientClosedError",
    "ClientDiedError",
    "ClientError",
    "ClusterAuthorizationError",
    "ConcurrentTransactionsError",
    "ControllerMovedError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptRecordError",
    "DelegationTokenAuthorizationError",
    "DelegationTokenDisabledError",
    "DelegationTokenExpiredError",
    "DelegationTokenNotFoundError",
    "DelegationTokenOwnerMismatchError",
    "DelegationTokenRequestNotAllowedError",
    "DisconnectedError",
    "DuplicateBrokerRegistrationError",
    "DuplicateResourceError",
    "DuplicateSequenceError",
    "DuplicateVoterError",
    "ElectionNotNeededError",
    "EligibleLeadersNotAvailableError",
    "FatalError",
    "FeatureUpdateFailedError",
    "FencedInstanceIdError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "FencedStateEpochError",
    "FetchSessionIdNotFoundError",
    "FetchSessionTopicIdError",
    "GroupAuthorizationError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
    "IllegalGenerationError",
    "IllegalSaslStateError",
    "InconsistentClusterIdError",
    "InconsistentGroupProtocolError",
    "InconsistentTopicIdError",
    "InconsistentVoterSetError",
    "IneligibleReplicaError",
    "InvalidCommitOffsetSizeError",
    "InvalidConfigurationError",
    "InvalidFetchSessionEpochError",
    "InvalidFetchSizeError",
    "InvalidGroupIdError",
    "InvalidMetadataError",
    "InvalidPartitionsError",
    "InvalidPrincipalTypeError",
    "InvalidProducerEpochError",
    "InvalidProducerIdMappingError",
    "InvalidRecordError",
    "InvalidRecordStateError",
    "InvalidRegistrationError",
    "InvalidRegularExpressionError",
    "InvalidReplicaAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidSessionTimeoutError",
    "InvalidShareSessionEpochError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "InvalidUpdateVersionError",
    "InvalidVoterKeyError",
    "KafkaError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "LeaderNotAvailableError",
    "ListenerNotFoundError",
    "LogDirNotFoundError",
    "MemberIdRequiredError",
    "MismatchedEndpointTypeError",
    "NetworkError",
    "NewLeaderElectedError",
    "NoReassignmentInProgressError",
    "NonEmptyGroupError",
    "NotControllerError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetMetadataTooLargeError",
    "OffsetMovedToTieredStorageError",
    "OffsetNotAvailableError",
    "OffsetOutOfRangeError",
    "OperationNotAttemptedError",
    "OutOfOrderSequenceError",
    "PolicyViolationError",
    "PositionOutOfRangeError",
    "PreferredLeaderNotAvailableError",
    "PrincipalDeserializationError",
    "ProducerFencedError",
    "ReassignmentInProgressError",
    "RebalanceInProgressError",
    "RebootstrapRequiredError",
    "RecordBatchTooLargeError",
    "RecordTooLargeError",
    "ReplicaNotAvailableError",
    "ResourceNotFoundError",
    "RetriableError",
    "SaslAuthenticationError",
    "SecurityDisabledError",
    "ShareSessionLimitReachedError",
    "ShareSessionNotFoundError",
    "SnapshotNotFoundError",
    "SslAuthenticationError",
    "StaleBrokerEpochError",
    "StaleMemberEpochError",
    "StreamsInvalidTopologyEpochError",
    "StreamsInvalidTopologyError",
    "StreamsTopologyFencedError",
    "TelemetryTooLargeError",
    "ThrottlingQuotaExceededError",
    "TopicAuthorizationError",
    "TopicDeletionDisabledError",
    "TopicExistsError",
    "TransactionAbortableError",
    "TransactionCoordinatorFencedError",
    "TransactionalIdAuthorizationError",
    "TransactionalIdNotFoundError",
    "UnacceptableCredentialError",
    "UnknownControllerIdError",
    "UnknownLeaderEpochError",
    "UnknownMemberIdError",
    "UnknownProducerIdError",
    "UnknownServerError",
    "UnknownSubscriptionIdError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnreleasedInstanceIdError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
    "UnsupportedCompressionTypeError",
    "UnsupportedEndpointTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedSaslMechanismError",
    "UnsupportedVersionError",
    "UsedAfterForkError",
    "VoterNotFoundError",
    "error_of",
]
