"""What a ConsumerGroupHeartbeat must look like, before any group is looked at."""

from collections.abc import Collection
from typing import Final

from kavka.coordinator.group.consumer.member import JOINING, LEAVING, LEFT_FOR_A_WHILE
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CLIENT_MAKES_MEMBER_ID_FROM: Final = 1
"""The version from which members bring their own id (KIP-1082)."""
_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java's String.trim takes away."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]) -> None:
    """Raise BrokerError (INVALID_REQUEST, UNSUPPORTED_ASSIGNOR) as Kafka does, in its order and words."""
    epoch = request.member_epoch
    if api_version >= CLIENT_MAKES_MEMBER_ID_FROM or epoch > 0 or epoch == LEAVING:
        _not_blank(request.member_id, "MemberId can't be empty.")
    _not_blank(request.group_id, "GroupId can't be empty.")
    _not_blank(request.instance_id, "InstanceId can't be empty.")
    _not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOINING:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEFT_FOR_A_WHILE:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says everything, as it does after an error: then it is told everything, too."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _not_blank(text: str | None, message: str) -> None:
    if text is not None and not text.strip(_BLANKS):
        raise _invalid(message)


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
