"""Finding the partition that a request names, with the error that tells a client what to do next."""

from typing import TYPE_CHECKING

from kavka.broker.partitions.partition import Partition
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.services import Services


def hosted_partition(services: "Services", topic: str, index: int) -> Partition:
    """The partition if this broker hosts it; it need not lead it.

    Raises BrokerError KAFKA_STORAGE_ERROR for one in a failed log directory, NOT_LEADER_OR_FOLLOWER for one that exists
    elsewhere (the client then refreshes its metadata), UNKNOWN_TOPIC_OR_PARTITION for one that is not known.
    """
    partition = find_hosted(services, topic, index)
    if partition is None:
        code = code_of_absent(services, topic, index)
        is_elsewhere = code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        raise BrokerError(code, f"{topic}-{index} is not hosted by this broker" if is_elsewhere else None)
    if partition.log is None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} is in an offline log directory")
    return partition


def find_hosted(services: "Services", topic: str, index: int) -> Partition | None:
    """The partition if this broker hosts it, maybe in a failed log directory.

    One of a topic that is being deleted stays there until the directory is back: to clients there is none.
    """
    partition = services.replicas.partitions.get((topic, index))
    if partition is not None and partition.log is None and services.metadata.current.partition(topic, index) is None:
        return None
    return partition


def code_of_absent(services: "Services", topic: str, index: int) -> ErrorCode:
    """The error for a partition that `find_hosted` has not found: whether it is elsewhere, or is not known at all."""
    known = services.metadata.current.partition(topic, index)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else ErrorCode.NOT_LEADER_OR_FOLLOWER


def current_leader(services: "Services", topic: str, index: int) -> tuple[int, int]:
    """Who leads a partition and in which epoch, for a client that asked somebody else (KIP-951); -1, -1: not known.

    The partition itself hears of a new leader first; of those that are not here, the metadata tell.
    """
    partition = services.replicas.partitions.get((topic, index))
    if partition is not None and partition.log is not None:
        role = partition.role
        return role.leader_id, role.leader_epoch
    known = services.metadata.current.partition(topic, index)
    return (-1, -1) if known is None else (known.leader, known.leader_epoch)
