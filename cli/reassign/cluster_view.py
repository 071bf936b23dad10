"""What a cluster says of itself before anything is moved: brokers, racks, replicas and their sizes."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.api_errors import KafkaError, UnknownTopicOrPartitionError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin
    from kavka.client.admin.types.log_dirs import LogDirDescription


def racks_of(admin: "Admin", *, is_rack_aware: bool = True) -> dict[int, str | None]:
    """The brokers that live, with their racks; all None where racks are not to be looked at."""
    return {node.id: node.rack if is_rack_aware else None for node in admin.describe_cluster().nodes}


def replicas_of(admin: "Admin", topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Who has which partition of these topics now. Raises Failure for a topic that is not there."""
    names = sorted(set(topics))
    if not names:
        return {}
    try:
        described = admin.describe_topics(names)
    except UnknownTopicOrPartitionError as error:
        raise Failure(f"there is no topic {names[0]}") from error
    except ItemErrors as failed:
        missing = [name for name, error in failed.errors.items() if isinstance(error, UnknownTopicOrPartitionError)]
        if len(missing) < len(failed.errors):
            raise
        raise Failure(f"there are no topics {', '.join(map(str, missing))}") from failed
    return {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in described.values()
        for each in topic.partitions
    }


def replicas_now(admin: "Admin", partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Who has these partitions now. Raises Failure for one that is not there."""
    found = replicas_of(admin, {each.topic for each in partitions})
    if missing := sorted(set(partitions) - found.keys()):
        raise Failure(f"there is no partition {', '.join(map(str, missing))}")
    return {partition: found[partition] for partition in partitions}


def log_dirs_of(admin: "Admin", broker_ids: Iterable[int]) -> "dict[int, dict[str, LogDirDescription]]":
    """The log directories of those of the brokers that answer: what others have is not counted."""
    ids = sorted(set(broker_ids))
    try:
        return admin.describe_log_dirs(ids)
    except ItemErrors as failed:
        return dict(failed.results)
    except KafkaError:
        if len(ids) > 1:
            raise
        return {}


def sizes_of(log_dirs: "Mapping[int, Mapping[str, LogDirDescription]]") -> dict[TopicPartition, int]:
    """Bytes of one replica by partition: the largest there is, as one that is behind has less."""
    sizes: dict[TopicPartition, int] = {}
    for dirs in log_dirs.values():
        for log_dir in dirs.values():
            for partition, replica in log_dir.replicas.items():
                if not replica.is_future:
                    sizes[partition] = max(sizes.get(partition, 0), replica.size_bytes)
    return sizes
