"""What a log tells those who ask: the parts of answers to searches, fetches and descriptions."""

from typing import NamedTuple


class ProducerStatus(NamedTuple):
    """A producer that wrote to the partition and hasn't expired, as DescribeProducers shows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int
    """-1: no open transaction."""


class AbortedTransaction(NamedTuple):
    """An entry of `.txnindex`: what a read_committed consumer filters out between the two offsets."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class FoundOffset(NamedTuple):
    """The answer to a search by time."""

    timestamp_ms: int
    offset: int
    leader_epoch: int
    """Of the batch found; -1 in old message formats."""
