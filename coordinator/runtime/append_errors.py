"""What a client of a coordinator is told when the coordinator could not append to its log."""

from typing import Final

from kavka.protocol.errors import BrokerError, ErrorCode


def told_to_clients(error: BrokerError) -> BrokerError:
    """The error that makes clients do the right thing: look again, or look for another coordinator.

    What the log itself said is the `__cause__`: OffsetCommit says INVALID_COMMIT_OFFSET_SIZE where that is a size.
    """
    code = _TOLD.get(error.code)
    if code is None:
        return error
    told = BrokerError(code, error.message)
    told.__cause__ = error
    return told


def is_too_large(error: BrokerError) -> bool:
    """Whether the log refused records for their size."""
    cause = error.__cause__ if isinstance(error.__cause__, BrokerError) else error
    return cause.code in _TOO_LARGE


_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_TOLD: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
