"""What clients did, were told and saw, as they noted it: the material that `checker.py` judges."""

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]
"""A topic's partition."""
Log: TypeAlias = list[tuple[int, str]]
"""Offsets and values of data records, in the order in which they were read."""

MOST_CONFLICTS: Final = 100
NOWHERE: Final = -1
"""The offset of a record that was acknowledged as a duplicate, without a word of where it lies."""


class Acknowledged(NamedTuple):
    """A record whose producer was told where it lies. `number`: as which one the producer sent it to the partition."""

    producer: str
    place: Place
    number: int
    offset: int
    value: str


class Isolation(Enum):
    """What a reader asked to see."""

    ALL = "read_uncommitted"
    COMMITTED = "read_committed"


class Jump(NamedTuple):
    """A reader was given `offset` next after `previous`: nothing that it may see lies between."""

    isolation: Isolation
    place: Place
    previous: int
    offset: int


class Fate(Enum):
    """How a transaction ended, as far as its producer knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Nobody was told: all of it stands, or nothing."""


class Transaction(NamedTuple):
    """The records of one transaction, and what became of it."""

    name: str
    fate: Fate
    records: tuple[tuple[Place, str], ...]


class Look(NamedTuple):
    """A committed offset that was told (`is_commit` False), or that a commit's answer made sure of.

    `began` and `ended` are moments of one counter: what ended before another began was before it.
    """

    group: str
    place: Place
    offset: int
    began: int
    ended: int
    is_commit: bool


class Life(NamedTuple):
    """One generation of a topic that is deleted and made again: what was acknowledged and what was then read of it."""

    topic: str
    number: int
    acknowledged: tuple[tuple[int, str], ...]
    read: tuple[tuple[int, str], ...]


@dataclass
class History:
    """Everything that was noted. Threads: any may note; who reads the fields does so when nobody notes any more."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    sent: dict[tuple[str, Place], int] = field(default_factory=lambda: defaultdict(int))
    """How many records each producer has tried to send to each partition: numbers below may be there."""
    idempotent: set[str] = field(default_factory=set)
    """The producers whose records may be there once only."""
    seen: dict[tuple[Isolation, Place], dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    jumps: list[Jump] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    """What should not have been answered or seen, found while it happened."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._moments = itertools.count(1)

    def moment(self) -> int:
        """A number above all given before."""
        return next(self._moments)

    def note_sent(self, producer: str, place: Place, number: int) -> None:
        """Before it is sent."""
        with self._lock:
            self.sent[producer, place] = number + 1

    def note_acknowledged(self, told: Acknowledged) -> None:
        with self._lock:
            self.acknowledged.append(told)

    def note_read(self, reader: str, isolation: Isolation, place: Place, records: Iterable[tuple[int, str]]) -> None:
        """What one reader was given of a partition; another reader, or itself, may have been given other values."""
        with self._lock:
            known = self.seen[isolation, place]
            for offset, value in records:
                before = known.setdefault(offset, value)
                if before != value and len(self.surprises) < MOST_CONFLICTS:
                    self.surprises.append(
                        f"{reader} read {value} at {offset} of {place}, where {before} was read before"
                    )

    def note_jump(self, jump: Jump) -> None:
        with self._lock:
            self.jumps.append(jump)

    def note_transaction(self, name: str, fate: Fate, records: Iterable[tuple[Place, str]]) -> None:
        with self._lock:
            self.transactions.append(Transaction(name, fate, tuple(records)))

    def note_looks(self, looks: Iterable[Look]) -> None:
        with self._lock:
            self.looks.extend(looks)

    def note_life(self, life: Life) -> None:
        with self._lock:
            self.lives.append(life)

    def surprise(self, what: str) -> None:
        with self._lock:
            if len(self.surprises) < MOST_CONFLICTS:
                self.surprises.append(what)
