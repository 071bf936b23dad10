"""How far one followed partition is, and what an answer of its leader means for it. Pure: no log, no clock, no thread.

    TRUNCATING  its log knows no epochs (old formats, or nothing in it): it is cut to its high watermark first
    FETCHING    asked for from the log's end, with the epoch of the last record: the leader tells where the histories
                part (Fetch v12 and later, KIP-595), and everything behind that is cut off

A partition that met an error is left out for `replica.fetch.backoff.ms`; one that cannot be followed at all has failed,
until the controller orders it anew.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import PartitionData

NO_EPOCH: Final = -1
UNKNOWN_LAG: Final = -1


class Phase(Enum):
    """See above."""

    TRUNCATING = 1
    FETCHING = 2


class FetchState(NamedTuple):
    """One partition under one leader epoch."""

    topic_id: bytes
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    phase: Phase
    lag: int = UNKNOWN_LAG
    """How many records the leader had committed that were not here when it answered last."""

    @property
    def is_in_sync(self) -> bool:
        """Whether it had all that the leader has: it is not throttled then (KIP-73), or the ISR would flap."""
        return self.lag == 0


class Position(NamedTuple):
    """What a log says of itself."""

    end_offset: int
    start_offset: int
    high_watermark: int
    latest_epoch: int


def beginning(topic_id: bytes, leader_epoch: int, log: Position) -> FetchState:
    """How to begin to follow the leader of that epoch."""
    cuts = log.latest_epoch == NO_EPOCH and log.end_offset > log.high_watermark
    return FetchState(
        topic_id,
        leader_epoch,
        log.end_offset,
        log.latest_epoch,
        log.start_offset,
        Phase.TRUNCATING if cuts else Phase.FETCHING,
    )


def moved(state: FetchState, log: Position, lag: int | None = None) -> FetchState:
    """After the log was appended to, or cut: the next fetch begins at its end."""
    return state._replace(
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.latest_epoch,
        log_start_offset=log.start_offset,
        phase=Phase.FETCHING,
        lag=state.lag if lag is None else lag,
    )


class Verdict(Enum):
    """What is to be done with a partition's part of an answer."""

    APPEND = 1
    TRUNCATE = 2
    RESET = 3
    """The offset is out of the leader's range, at one of its ends: ask where these are."""
    RETRY = 4
    """Ask again after the back-off."""
    FAIL = 5
    """The leader of this epoch is none any more: wait for the controller's next order."""


def judge(answer: PartitionData) -> Verdict:
    """What is to be done with an answer to a fetch in the leader epoch that is still the partition's."""
    code = answer.error_code
    if code == ErrorCode.NONE:
        return Verdict.TRUNCATE if answer.diverging_epoch.epoch >= 0 else Verdict.APPEND
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return Verdict.RESET
    if code == ErrorCode.FENCED_LEADER_EPOCH:
        return Verdict.FAIL
    return Verdict.RETRY


def truncation_offset(epoch: int, end_offset: int, log: Position, own_end: Callable[[int], tuple[int, int]]) -> int:
    """Where to cut when the leader has said that its `epoch` ends at `end_offset` (KIP-101, KIP-279).

    It named its largest epoch that is not above the one asked for. `own_end(epoch)` is what this log says to the same
    question. Where this log does not know the epoch, it is cut to what it has of smaller ones: the next fetch asks
    again. Never above the log's end.
    """
    if end_offset < 0:
        return min(log.high_watermark, log.end_offset)
    own_epoch, own_end_offset = own_end(epoch)
    if own_epoch < 0:
        return min(end_offset, log.end_offset)
    if own_epoch != epoch:
        return min(own_end_offset, log.end_offset)
    return min(own_end_offset, end_offset, log.end_offset)


class Reset(NamedTuple):
    """What to do with a log whose end is out of the leader's range."""

    cut_to: int | None = None
    begin_at: int | None = None
    """Everything goes: what comes next in the leader's log lies behind this one's end."""


def reset_by_end(leader_end_offset: int, log: Position) -> Reset | None:
    """The leader's log is shorter: an election from outside the ISR. None: look at its start (`reset_by_start`)."""
    return Reset(cut_to=leader_end_offset) if leader_end_offset < log.end_offset else None


def reset_by_start(leader_start_offset: int, log: Position) -> Reset:
    """This broker was away for so long that the leader has deleted what comes next; or nothing is wrong any more."""
    return Reset(begin_at=leader_start_offset) if leader_start_offset > log.end_offset else Reset()
