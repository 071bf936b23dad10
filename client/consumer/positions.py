"""How far a partition is read: what is known of one partition that is assigned."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID

EARLIEST: Final = -2
LATEST: Final = -1
"""Timestamps of ListOffsets."""
LAST_OFFSET: Final = 2**63 - 1
LAST_EPOCH: Final = 2**31 - 1
"""Beyond these no request can name any."""


class Phase(enum.Enum):
    """HELD: the listener does not know of it. UNKNOWN: it has no position yet. RESETTING: one is looked up.

    CHECKING: whether the log still has what was read (KIP-320). READING: it can be fetched.
    """

    HELD = "held"
    UNKNOWN = "unknown"
    RESETTING = "resetting"
    CHECKING = "checking"
    READING = "reading"


class ResetPolicy(NamedTuple):
    """Where to go on without a usable position: `auto.offset.reset`. Neither: raise."""

    timestamp: int | None = LATEST
    """EARLIEST or LATEST."""
    duration_ms: int | None = None
    """So long ago (KIP-1106)."""

    @property
    def is_none(self) -> bool:
        return self.timestamp is None and self.duration_ms is None

    def timestamp_at(self, wall_clock_ms: float) -> int:
        """What to look up, at this time."""
        if self.duration_ms is not None:
            return max(int(wall_clock_ms) - self.duration_ms, 0)
        assert self.timestamp is not None
        return self.timestamp


class Position(NamedTuple):
    """The next record's offset, and the leader epoch of the last one that was read, where known."""

    offset: int
    epoch: int | None = None


class PartitionState:
    """What a consumer knows of an assigned partition. All of it is guarded by its Subscription's lock."""

    __slots__ = (
        "buffered_bytes",
        "buffered_errors",
        "checked_epoch",
        "end_offset",
        "fetched",
        "generation",
        "is_asked",
        "is_paused",
        "is_unwanted",
        "is_withheld",
        "leader_only_until_ms",
        "log_start_offset",
        "not_before_ms",
        "partition",
        "phase",
        "position",
        "preferred_node",
        "preferred_until_ms",
        "reset_to",
        "stable_offset",
        "topic_id",
    )

    def __init__(self, partition: TopicPartition, phase: Phase, generation: int = 0) -> None:
        self.partition: Final = partition
        self.phase = phase
        self.generation = generation
        """Counts what makes answers to former requests meaningless: seeks, resets, cuts, and other assignments."""
        self.position = Position(-1)
        """After what was given out."""
        self.fetched = Position(-1)
        """After what was fetched: that is where to fetch on."""
        self.checked_epoch = -1
        """The leader epoch for which the position is known to be good."""
        self.reset_to: ResetPolicy | None = None
        """While RESETTING; None: by the consumer's own policy."""
        self.topic_id: bytes = ZERO_UUID
        """Of the topic that is read; all zero while it is not known."""
        self.is_asked = False
        """A lookup for the phase is out."""
        self.not_before_ms = 0.0
        """The back-off after an error."""
        self.is_paused = False
        self.is_withheld = False
        self.is_unwanted = False
        """Its topic is not subscribed to any more: it goes with the next rebalance."""
        self.buffered_bytes = 0
        self.buffered_errors = 0
        self.end_offset: int | None = None
        """The high watermark, as of the last answer."""
        self.stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.preferred_node: int | None = None
        """The closest replica (KIP-392)."""
        self.preferred_until_ms = 0.0
        self.leader_only_until_ms = 0.0
        """The closest replica could not be reached: until then the leader is not asked whom to ask."""

    def move(self, position: Position, phase: Phase = Phase.READING) -> None:
        """Go on elsewhere; what was fetched is of no use."""
        self.generation += 1
        self.position = self.fetched = position
        self.phase = phase
        self.is_asked = False
        self.not_before_ms = 0.0

    def begin(self, phase: Phase, reset_to: ResetPolicy | None = None) -> None:
        """There is no position any more, it is to be found."""
        self.generation += 1
        self.phase = phase
        self.reset_to = reset_to
        self.is_asked = False
        self.not_before_ms = 0.0

    def refetch(self) -> None:
        """Drop what was fetched and not given out."""
        self.generation += 1
        self.fetched = self.position

    @property
    def has_position(self) -> bool:
        return self.phase in (Phase.READING, Phase.CHECKING)

    @property
    def is_kept(self) -> bool:
        """Whether its records are not to be given out now, and no more of them to be asked for."""
        return self.is_paused or self.is_withheld or self.is_unwanted
