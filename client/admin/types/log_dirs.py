"""Log directories and the replicas in them (KIP-113)."""

from collections.abc import Mapping
from typing import NamedTuple

from kavka.client.kafka_error import KafkaError
from kavka.client.topic_partition import TopicPartition


class ReplicaInfo(NamedTuple):
    """A replica in a log directory. `is_future`: a copy that will take the place of the one in another directory.

    for dirs in admin.describe_log_dirs().values():
        for log_dir in dirs.values():
            print(sum(replica.size_bytes for replica in log_dir.replicas.values()))
    """

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory. `error` is set for one that is broken; the bytes are -1 where brokers before 3.3 do not tell.

    for broker_id, dirs in admin.describe_log_dirs().items():
        for path, log_dir in dirs.items():
            print(broker_id, path, log_dir.error or f"{log_dir.usable_bytes} of {log_dir.total_bytes} are free")
    """

    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class ReplicaLogDirInfo(NamedTuple):
    """Where a replica is, and where it is being moved to, with how many records behind. None and -1: nowhere.

    leader_id = admin.describe_topics(["visits"])["visits"].partitions[0].leader_id
    replica = TopicPartitionReplica("visits", 0, leader_id)
    print(admin.describe_replica_log_dirs([replica])[replica].current_dir)
    """

    current_dir: str | None
    current_offset_lag: int
    future_dir: str | None
    future_offset_lag: int
