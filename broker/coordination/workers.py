"""Which threads do a coordinator's work that cannot be done where it comes up."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Execute: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs a piece of work soon, on another thread."""


class Workers(NamedTuple):
    """By what the work may wait for: what a slow disk holds up must not hold up everybody's sessions and rebalances."""

    operations: Execute
    """Takes locks, but waits for no disk: shards' timers, the end of shards, news of topics, answers to revocations."""
    appends: Execute
    """May append what a client sent, and so wait for the fsync that its topic asks for."""
    flushes: Execute
    """Is an fsync: of markers, and of the internal topics."""
