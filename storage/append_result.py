"""What goes into an append and what comes out of it."""

from enum import IntEnum
from typing import NamedTuple

from kavka.protocol.errors import BrokerError, ErrorCode


class Origin(IntEnum):
    """Who appends to the leader; decides which checks apply."""

    CLIENT = 0
    """A Produce request: all checks, sequence numbers included."""
    COORDINATOR = 1
    """A group or transaction coordinator on this broker: control batches are allowed, sequences aren't checked.

    The fsync that `flush.messages` asks for is left to it (`is_flush_due`): it holds a lock while it appends.
    """
    REPLICATION = 2
    """A follower copies what the leader has checked: offsets are kept, a stale producer epoch only warns."""


class AppendResult(NamedTuple):
    """Where the records went. For a duplicate: where they went the first time."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """The broker's time where `message.timestamp.type=LogAppendTime`, else -1; of a duplicate always its timestamp."""
    log_start_offset: int
    duplicate: bool


class AppendError(BrokerError):
    """An append that was refused; nothing was written.

    `record_errors` names the records at fault (index in the batch, message), for Produce v8 and later (KIP-467).
    """

    record_errors: tuple[tuple[int, str], ...]

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class TooFarAheadError(AppendError):
    """The header's largest timestamp is out of bounds; `rewrite.records_ahead` finds the records, if that is wanted."""


class UnflushedError(AppendError):
    """The batch was appended, but the fsync that `flush.messages` asks for failed: a second try would double it."""


class MalformedRequestError(AppendError):
    """Not what a Produce request of its version may hold: refused before the log was looked at."""
