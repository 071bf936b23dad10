"""Who leads a partition: pure functions of its assignment, its in-sync replicas and the brokers that live.

Each gives the new leader, or None if nobody may lead. `assignment` is in order of preference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Elected(NamedTuple):
    """The outcome: `is_unclean` says that messages may have been lost."""

    leader: int
    isr: tuple[int, ...]
    is_unclean: bool = False


def elect_after_failure(
    assignment: Sequence[int], isr: Collection[int], live: Collection[int], allow_unclean: bool
) -> Elected | None:
    """The leader is gone: the first live replica in sync, or if allowed the first live replica at all."""
    for broker in assignment:
        if broker in live and broker in isr:
            return Elected(broker, tuple(each for each in isr if each in live))
    if allow_unclean:
        for broker in assignment:
            if broker in live:
                return Elected(broker, (broker,), is_unclean=True)
    return None


def elect_preferred(assignment: Sequence[int], isr: Collection[int], live: Collection[int]) -> Elected | None:
    """The first replica of the assignment, if it lives and is in sync."""
    preferred = assignment[0]
    return Elected(preferred, tuple(isr)) if preferred in live and preferred in isr else None


def elect_for_shutdown(
    assignment: Sequence[int], isr: Collection[int], live: Collection[int], stopping: Collection[int]
) -> Elected | None:
    """A broker is about to stop: the first replica that lives, is in sync and stays."""
    for broker in assignment:
        if broker in live and broker in isr and broker not in stopping:
            return Elected(broker, tuple(each for each in isr if each not in stopping))
    return None


def elect_for_reassignment(
    target: Sequence[int], isr: Collection[int], live: Collection[int], leader: int
) -> Elected | None:
    """All that shall hold the partition are in sync: the others leave the ISR, and one of them leads no more."""
    for broker in (leader, *target):
        if broker in target and broker in live and broker in isr:
            return Elected(broker, tuple(each for each in isr if each in target))
    return None


def elect_first(assignment: Sequence[int], live: Collection[int]) -> Elected | None:
    """A new partition: all its live replicas are in sync, the first of them leads."""
    isr = tuple(broker for broker in assignment if broker in live)
    return Elected(isr[0], isr) if isr else None
