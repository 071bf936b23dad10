"""DescribeProducers v0.

Behaviour
- The producers that a partition remembers, with their last sequence and the start of an open transaction (KIP-664): how
  hanging transactions are found.
- Not done: nothing.
"""

from typing import TYPE_CHECKING

from kavka.broker.partitions.hosted import hosted_partition
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic
from kavka.cluster.topic_names import validate_topic_name
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: DescribeProducersRequest, code: ErrorCode, message: str | None) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=asked.name,
                partitions=[_not_described(index, code, message) for index in asked.partition_indexes],
            )
            for asked in request.topics
        ]
    )


@handles(DescribeProducersRequest, versions="0", error_answer=_refused)
def describe_producers(
    request: DescribeProducersRequest, context: Context, services: "Services"
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=asked.name, partitions=_describe_topic(asked, context, services))
            for asked in request.topics
        ]
    )


def _describe_topic(asked: TopicRequest, context: Context, services: "Services") -> list[PartitionResponse]:
    """All its partitions. Whoever may not read it is not told whether it exists."""
    try:
        validate_topic_name(asked.name)
        context.require(Operation.READ, topic(asked.name))
        if services.metadata.current.topic(asked.name) is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except BrokerError as refusal:
        message = refusal.message or refusal.code.message
        return [_not_described(index, refusal.code, message) for index in asked.partition_indexes]
    return [_describe(asked.name, index, services) for index in asked.partition_indexes]


def _describe(name: str, index: int, services: "Services") -> PartitionResponse:
    try:
        log = hosted_partition(services, name, index).leader_log()
    except BrokerError as refusal:
        return _not_described(index, refusal.code, refusal.message)
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[
            ProducerState(
                producer_id=status.producer_id,
                producer_epoch=status.producer_epoch,
                last_sequence=status.last_sequence,
                last_timestamp=status.last_timestamp_ms,
                coordinator_epoch=status.coordinator_epoch,
                current_txn_start_offset=status.current_txn_start_offset,
            )
            for status in log.active_producers()
        ],
    )


def _not_described(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message, active_producers=[])
