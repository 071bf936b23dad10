"""DescribeLogDirs and AlterReplicaLogDirs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    Operation,
    Outcome,
    by_topic,
    check,
    error_or,
)
from kavka.client.admin.targets import Broker
from kavka.client.admin.types.log_dirs import LogDirDescription, ReplicaInfo
from kavka.client.admin.types.topics import TopicPartitionReplica
from kavka.client.api_errors import error_of
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kavka.protocol.schema import Request

_NOT_YET: Final = ALWAYS_RETRIED | {ErrorCode.REPLICA_NOT_AVAILABLE}


def describe_log_dirs(
    broker_ids: Sequence[int], partitions: Mapping[int, Sequence[TopicPartition]] | None = None
) -> Operation[int, dict[str, LogDirDescription]]:
    """`partitions` by broker; None: all."""

    def request(asked: Sequence[int], _timeout_ms: int) -> Request:
        topics = None
        if partitions is not None:
            wanted = by_topic(partitions[asked[0]])
            topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in wanted.items()]
        return DescribeLogDirsRequest(topics=topics)

    def read(answered: Answered[int]) -> Iterator[tuple[int, dict[str, LogDirDescription]]]:
        check(answered.body.error_code)
        yield answered.items[0], {row.log_dir: _described(row) for row in answered.body.results}

    return Operation("describing log directories", broker_ids, request=request, read=read, target=Broker, at_once=1)


def _described(row: Any) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in row.topics
        for partition in topic.partitions
    }
    error = error_of(row.error_code) if row.error_code else None
    return LogDirDescription(error, replicas, row.total_bytes, row.usable_bytes, row.is_cordoned)


def alter_replica_log_dirs(moves: Mapping[TopicPartitionReplica, str]) -> Operation[TopicPartitionReplica, None]:
    def request(asked: Sequence[TopicPartitionReplica], _timeout_ms: int) -> Request:
        by_path: dict[str, list[TopicPartition]] = {}
        for replica in asked:
            by_path.setdefault(moves[replica], []).append(TopicPartition(replica.topic, replica.partition))
        dirs = [
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
        return AlterReplicaLogDirsRequest(dirs=dirs)

    def read(
        answered: Answered[TopicPartitionReplica],
    ) -> Iterator[tuple[TopicPartitionReplica, Outcome[None]]]:
        broker_id = answered.items[0].broker_id
        for topic in answered.body.results:
            for row in topic.partitions:
                replica = TopicPartitionReplica(topic.topic_name, row.partition_index, broker_id)
                yield replica, error_or(row, None)

    return Operation(
        "moving replicas between log directories",
        moves,
        request=request,
        read=read,
        target=lambda replica: Broker(replica.broker_id),
        retried=_NOT_YET,
    )
