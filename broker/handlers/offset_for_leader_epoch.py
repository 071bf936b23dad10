"""OffsetForLeaderEpoch v0-4.

Behaviour
- Where an epoch ended in the leader's log, so that a follower or a consumer finds where its history and the leader's
  part (KIP-101, KIP-320): the largest epoch not above the one asked for, and its end offset; -1 and -1 if there is
  none.
- The client's own idea of the current leader epoch is compared first: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
- Not done: nothing.

Versions
- v1: the answer names the epoch. v2: the current leader epoch. v3: a replica id, not needed to answer.
"""

from typing import TYPE_CHECKING

from kavka.broker.partitions.hosted import hosted_partition
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: OffsetForLeaderEpochRequest, code: ErrorCode, _message: str | None
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(topic=each.topic, partitions=[_unknown(part, code) for part in each.partitions])
            for each in request.topics
        ]
    )


@handles(OffsetForLeaderEpochRequest, versions="0-4", error_answer=_refused)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: Context, services: "Services"
) -> OffsetForLeaderEpochResponse:
    is_broker = context.allows(Operation.CLUSTER_ACTION, CLUSTER, quiet=True)
    results = []
    for each in request.topics:
        allowed = is_broker or context.allows(Operation.DESCRIBE, topic(each.topic))
        ends = []
        for part in each.partitions:
            try:
                if not allowed:
                    raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                ends.append(_end_of_epoch(each.topic, part, services))
            except BrokerError as error:
                ends.append(_unknown(part, error.code))
        results.append(OffsetForLeaderTopicResult(topic=each.topic, partitions=ends))
    return OffsetForLeaderEpochResponse(topics=results)


def _unknown(part: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=part.partition)


def _end_of_epoch(name: str, part: OffsetForLeaderPartition, services: "Services") -> EpochEndOffset:
    partition = hosted_partition(services, name, part.partition)
    role = partition.role
    partition.check_leader_epoch(part.current_leader_epoch)
    leader_epoch, end_offset = partition.leader_log().end_offset_for_epoch(part.leader_epoch)
    now = partition.role
    if not (now.is_leader and now.leader_epoch == role.leader_epoch):
        # A follower's log, maybe, which is not cut yet.
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=part.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )
