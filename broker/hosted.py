"""Finding the partition that a request names, with the error that tells a client what to do next."""

from typing import TYPE_CHECKING

from kavka.broker.partition import Partition
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.services import Services


def hosted_partition(services: "Services", topic: str, index: int) -> Partition:
    """The partition if this broker hosts it; it need not lead it.

    Raises BrokerError NOT_LEADER_OR_FOLLOWER for a partition that exists elsewhere (the client then refreshes its
    metadata), UNKNOWN_TOPIC_OR_PARTITION for one that is not known.
    """
    try:
        return services.replicas.partition(topic, index)
    except BrokerError as error:
        if (
            error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            and services.metadata.current.partition(topic, index) is not None
        ):
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not hosted by this broker"
            ) from error
        raise
