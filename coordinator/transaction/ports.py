"""What a transaction shard needs of the broker beyond its context: producer ids, and markers at partitions' leaders.

Both are called as replies are: once, with no lock held, when the high watermark has passed what they follow from. The
outcome comes back as an operation on the shard of that partition, if this broker still coordinates it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.coordinator.runtime.result import Result
    from kavka.coordinator.transaction.metadata import Dispatch, TopicPartition


class ProducerIdWanted(NamedTuple):
    """A decision that waits for a producer id. Answered by `TransactionShard.producer_id_given`, once."""

    partition: int
    """Of the shard."""
    transactional_id: str
    decide: "Callable[[Any, int], Result]"
    """What was asked, to be decided anew: given the shard's table of that moment, and the id."""
    refuse: Callable[[BrokerError], object]
    """Answers that there is none, or that this broker no longer coordinates the id."""


class MarkersWanted(NamedTuple):
    """Markers to be written. Answered by `TransactionShard.markers_answered` for all partitions, once."""

    partition: int
    """Of the shard."""
    transactional_id: str
    producer_id: int
    producer_epoch: int
    """The markers carry it."""
    coordinator_epoch: int
    committed: bool
    transaction_version: int
    partitions: "tuple[TopicPartition, ...]"
    dispatch: "Dispatch"
    """They themselves: transactions of version 1 follow one another with the same epoch, so that nothing else tells
    these markers from others. Once it is over none may be appended.
    """


class TransactionPorts(Protocol):
    """The broker, as transaction shards see it. Any thread; no lock is held."""

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version` that the cluster has agreed on: what all its brokers can read."""

    def give_producer_id(self, wanted: ProducerIdWanted) -> None:
        """Get a producer id of its own for this."""

    def write_markers(self, wanted: MarkersWanted) -> None:
        """Have the partitions' leaders write the markers; each is tried once, and always answered."""
