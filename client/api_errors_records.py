"""Errors of topics, partitions, records and offsets, one class for each code."""

from kavka.client.kafka_error import (
    AbortableError,
    AuthorizationError,
    FatalError,
    InvalidMetadataError,
    KafkaError,
    RetriableError,
)
from kavka.protocol.errors import ErrorCode


class OffsetOutOfRangeError(KafkaError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset is not, or no longer, in the partition's log."""


class CorruptRecordError(RetriableError, code=ErrorCode.CORRUPT_MESSAGE):
    """Records arrived damaged: their checksum or their size is not right."""


class UnknownTopicOrPartitionError(InvalidMetadataError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The broker hosts no such topic or partition, or does not know of it yet."""


class InvalidFetchSizeError(KafkaError, code=ErrorCode.INVALID_FETCH_SIZE):
    """The size asked for in a fetch is none."""


class LeaderNotAvailableError(InvalidMetadataError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """The partition has no leader now: an election is under way."""


class NotLeaderOrFollowerError(InvalidMetadataError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """The broker that was asked does not lead the partition, or has no replica of it."""


class ReplicaNotAvailableError(InvalidMetadataError, code=ErrorCode.REPLICA_NOT_AVAILABLE):
    """The replica is not there, or not yet."""


class RecordTooLargeError(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """A record, or its batch, is larger than what the topic or a setting allows."""


class OffsetMetadataTooLargeError(KafkaError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The text beside a committed offset is longer than the broker takes."""


class InvalidTopicError(KafkaError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """A name that no topic can have, or a topic that may not be written to."""


class RecordBatchTooLargeError(KafkaError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batches of a request are larger than the broker's segments."""


class NotEnoughReplicasError(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than `min.insync.replicas` asks for; nothing was written."""


class NotEnoughReplicasAfterAppendError(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The records were written, but then fewer replicas were in sync than are asked for: trying again may double
    them.
    """


class InvalidRequiredAcksError(KafkaError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """`acks` is none of 0, 1 and -1."""


class TopicAuthorizationError(AuthorizationError, AbortableError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """The principal may not do this with the topic."""


class InvalidTimestampError(KafkaError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record's timestamp is too far from the broker's time, or the topic takes none."""


class TopicExistsError(KafkaError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """There is a topic of this name already."""


class InvalidPartitionsError(KafkaError, code=ErrorCode.INVALID_PARTITIONS):
    """A number of partitions that a topic cannot have."""


class InvalidReplicationFactorError(KafkaError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """No replicas, or more than there are brokers."""


class InvalidReplicaAssignmentError(KafkaError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """Replicas assigned to brokers that are not there, or twice to one."""


class UnsupportedForMessageFormatError(FatalError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The topic's message format is too old for what was asked."""


class KafkaStorageError(InvalidMetadataError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """The broker's disk failed, or is full."""


class LogDirNotFoundError(KafkaError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The broker has no such log directory."""


class FetchSessionIdNotFoundError(RetriableError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
    """The broker has dropped the fetch session."""


class InvalidFetchSessionEpochError(RetriableError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH):
    """The fetch session is at another step than the request."""


class ListenerNotFoundError(InvalidMetadataError, code=ErrorCode.LISTENER_NOT_FOUND):
    """The leader has no listener of the name by which it was asked for."""


class TopicDeletionDisabledError(KafkaError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """The brokers are set up to delete no topics."""


class FencedLeaderEpochError(InvalidMetadataError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The request comes with an older leader epoch than the broker's."""


class UnknownLeaderEpochError(RetriableError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The request comes with a newer leader epoch than the broker's."""


class UnsupportedCompressionTypeError(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The codec is not known to the broker, or not in the request's version."""


class OffsetNotAvailableError(RetriableError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """The leader is new, and does not know yet how far its records are replicated."""


class PreferredLeaderNotAvailableError(InvalidMetadataError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred leader is not there, or not in sync."""


class EligibleLeadersNotAvailableError(InvalidMetadataError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica that may lead is there."""


class ElectionNotNeededError(InvalidMetadataError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition has the leader that was to be elected."""


class NoReassignmentInProgressError(KafkaError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """There is no reassignment of the partition that could be cancelled."""


class ReassignmentInProgressError(KafkaError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """The partition's replicas are being moved."""


class InvalidRecordError(KafkaError, code=ErrorCode.INVALID_RECORD):
    """The broker has looked at the record, and refuses it."""


class PositionOutOfRangeError(KafkaError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    """A position in a file that is not there."""


class UnknownTopicIdError(InvalidMetadataError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """The broker knows no topic by this id: it was deleted, or created anew."""


class InconsistentTopicIdError(InvalidMetadataError, code=ErrorCode.INCONSISTENT_TOPIC_ID):
    """The log's topic id is another one than the request's."""


class FetchSessionTopicIdError(RetriableError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
    """A fetch session met topics with ids and topics without."""


class NewLeaderElectedError(KafkaError, code=ErrorCode.NEW_LEADER_ELECTED):
    """A new leader was elected while the request was under way."""


class OffsetMovedToTieredStorageError(KafkaError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    """The records are in tiered storage."""
