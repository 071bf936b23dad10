"""AlterReplicaLogDirs v0-2.

Behaviour
- Has replicas of this broker lie in the log directories named (KIP-113): a copy is made there in the background, slower
  where `replica.alter.log.dirs.io.max.bytes.per.second` says so, and takes the replica's place once it has all. The
  answer does not wait for that: DescribeLogDirs shows copies as future replicas.
- A replica that moves already is redirected; named with the directory that it lies in, it stays. One that is yet to be
  made is REPLICA_NOT_AVAILABLE (UNKNOWN_TOPIC_OR_PARTITION before the broker knows the partition), and made there.
- LOG_DIR_NOT_FOUND for what is none of log.dirs by its absolute path, KAFKA_STORAGE_ERROR where the directory or the
  replica is offline, or a move would begin while any directory is.
- Not done: nothing.

Versions
- v1: throttled answers are sent at once. v2 is the first flexible one.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kavka.broker.services import Services

TopicPartition = tuple[str, int]


def _refused(request: AlterReplicaLogDirsRequest, code: ErrorCode, _: str | None) -> AlterReplicaLogDirsResponse:
    return _answer(dict.fromkeys(_wanted(request), code))


@handles(AlterReplicaLogDirsRequest, versions="0-2", error_answer=_refused)
def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context, services: "Services"
) -> AlterReplicaLogDirsResponse:
    context.require(Operation.ALTER, CLUSTER)
    return _answer({key: _alter(key, path, services) for key, path in _wanted(request).items()})


def _wanted(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """Of a partition that is named twice the last directory counts."""
    return {
        (topic.name, index): each.path for each in request.dirs for topic in each.topics for index in topic.partitions
    }


def _alter(key: TopicPartition, path: str, services: "Services") -> ErrorCode:
    try:
        services.replica_moves.alter(key, path)
    except BrokerError as failure:
        return failure.code
    return ErrorCode.NONE


def _answer(codes: "Mapping[TopicPartition, ErrorCode]") -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), code in codes.items():
        result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        by_topic.setdefault(topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=parts) for name, parts in by_topic.items()]
    )
