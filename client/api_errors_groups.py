"""Errors of groups and transactions, one class for each code."""

from kavka.client.kafka_error import AbortableError, AuthorizationError, FatalError, KafkaError, RetriableError
from kavka.protocol.errors import ErrorCode


class CoordinatorLoadInProgressError(RetriableError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still reading what it has to know."""


class CoordinatorNotAvailableError(RetriableError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """There is no coordinator now, or its topic is not there yet."""


class NotCoordinatorError(RetriableError, code=ErrorCode.NOT_COORDINATOR):
    """The broker that was asked is not the coordinator, or not any more."""


class IllegalGenerationError(KafkaError, code=ErrorCode.ILLEGAL_GENERATION):
    """The group is at another generation: it has rebalanced."""


class InconsistentGroupProtocolError(KafkaError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member has no protocol or assignor in common with the group."""


class InvalidGroupIdError(KafkaError, code=ErrorCode.INVALID_GROUP_ID):
    """An id that no group can have."""


class UnknownMemberIdError(KafkaError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The coordinator knows no such member: it was too late, or has left."""


class InvalidSessionTimeoutError(KafkaError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """`session.timeout.ms` is outside what the broker allows."""


class RebalanceInProgressError(KafkaError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing: its members have to join again."""


class InvalidCommitOffsetSizeError(KafkaError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """What is to be committed is too large."""


class GroupAuthorizationError(AuthorizationError, AbortableError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """The principal may not do this with the group."""


class OutOfOrderSequenceError(AbortableError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """The broker misses records before these: some may have been lost."""


class DuplicateSequenceError(KafkaError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """The broker has these records already."""


class InvalidProducerEpochError(AbortableError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """The producer's epoch is older than the broker's: its transaction was aborted, or another has taken over."""


class InvalidTxnStateError(FatalError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction is in no state in which this can be done."""


class InvalidProducerIdMappingError(AbortableError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The producer id is not, or no longer, that of the transactional id."""


class InvalidTransactionTimeoutError(FatalError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """`transaction.timeout.ms` is longer than the broker allows."""


class ConcurrentTransactionsError(RetriableError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """The transaction before is not finished yet, or another step of this one is under way."""


class TransactionCoordinatorFencedError(KafkaError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """The coordinator has been replaced by a newer one."""


class TransactionalIdAuthorizationError(
    AuthorizationError, FatalError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
):
    """The principal may not use the transactional id."""


class UnknownProducerIdError(OutOfOrderSequenceError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The broker has forgotten the producer: its last records were deleted, or it was idle for too long."""


class NonEmptyGroupError(KafkaError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group has members."""


class GroupIdNotFoundError(KafkaError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """There is no such group."""


class MemberIdRequiredError(KafkaError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """The member has to join again, with the id that it was given now (KIP-394)."""


class GroupMaxSizeReachedError(KafkaError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group has as many members as it may have."""


class FencedInstanceIdError(AbortableError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member has taken over this `group.instance.id`."""


class GroupSubscribedToTopicError(KafkaError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """Members of the group are subscribed to the topic."""


class UnstableOffsetCommitError(RetriableError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    """A transaction that commits offsets of the group is not finished yet."""


class ProducerFencedError(FatalError, code=ErrorCode.PRODUCER_FENCED):
    """A newer producer has taken over the transactional id."""


class TransactionalIdNotFoundError(KafkaError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """The coordinator knows no such transactional id."""


class FencedMemberEpochError(KafkaError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member's epoch is not the coordinator's: it has to join anew (KIP-848)."""


class UnreleasedInstanceIdError(KafkaError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member has this `group.instance.id`, and has not left."""


class UnsupportedAssignorError(KafkaError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The coordinator has no assignor of this name."""


class StaleMemberEpochError(KafkaError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member is at a newer epoch than the request: to be sent again with that."""


class TransactionAbortableError(AbortableError, code=ErrorCode.TRANSACTION_ABORTABLE):
    """The transaction has to be aborted; the producer goes on (KIP-890)."""


class InvalidRegularExpressionError(KafkaError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The broker cannot use the pattern of topics."""


class InvalidRecordStateError(KafkaError, code=ErrorCode.INVALID_RECORD_STATE):
    """The record of a share group is in no state in which this can be done."""


class ShareSessionNotFoundError(RetriableError, code=ErrorCode.SHARE_SESSION_NOT_FOUND):
    """The broker has dropped the share session."""


class InvalidShareSessionEpochError(RetriableError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH):
    """The share session is at another step than the request."""


class FencedStateEpochError(KafkaError, code=ErrorCode.FENCED_STATE_EPOCH):
    """The share coordinator's epoch is newer than the request's."""


class ShareSessionLimitReachedError(RetriableError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED):
    """The broker keeps as many share sessions as it may."""


class StreamsInvalidTopologyError(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    """The topology of a streams group cannot be used."""


class StreamsInvalidTopologyEpochError(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """The epoch of a streams group's topology is none."""


class StreamsTopologyFencedError(KafkaError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    """The streams group has a newer topology."""
