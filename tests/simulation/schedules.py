"""Schedules: made from a seed, run, made shorter, printed.

python -m tests.simulation.schedules SEED       runs one and tells what it finds
"""

from __future__ import annotations

import logging
import random
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from tests.simulation.actions import ACTIONS, converse
from tests.simulation.cluster import Cluster, Shape
from tests.simulation.invariants import CaughtErrors, Invariants, ViolationError
from tests.simulation.rest import come_to_rest

Step = tuple[str, int]
Schedule = Sequence[Step]

STEPS = 70
USUAL: Mapping[str, int] = {
    "produce": 14,
    "fetch": 24,
    "begin": 5,
    "serve": 6,
    "finish": 6,
    "flush": 1,
    "checkpoint": 1,
    "order": 6,
    "ghost": 3,
    "watch": 3,
    "control": 4,
    "converse": 9,
    "ask": 2,
    "hear": 2,
    "agree": 5,
    "job": 1,
    "housekeeping": 2,
    "reassign": 1,
    "prefer": 1,
    "hand_over": 1,
    "kill": 3,
    "power_cut": 1,
    "replace_disk": 1,
    "replace_and_restart": 1,
    "kill_in_doubt": 1,
    "boot": 6,
    "expire": 3,
    "reconnect": 1,
    "cut": 1,
    "heal": 1,
    "tick": 3,
    "overtake": 1,
}


class Profile(NamedTuple):
    """What kind of schedules to make."""

    shapes: tuple[Shape, ...]
    weights: Mapping[str, int] = USUAL
    steps: int = STEPS
    rest_every: int = 4
    """Of so many schedules one goes on until the cluster is at rest, and is looked at then."""

    def shape(self, seed: int) -> Shape:
        return self.shapes[seed % len(self.shapes)]


THREE = Shape()
FOUR = Shape(brokers=4)
TWO = Shape(brokers=2, replicas=(1, 2))
ONE_IS_ENOUGH = Shape(min_insync_replicas=1)
UNCLEAN = Shape(unclean=True)
AWAY: Mapping[str, int] = {"boot_without": 2, "restart_without": 1, "directory_fails": 1}
EVERYTHING = Profile(
    (THREE, FOUR, ONE_IS_ENOUGH, UNCLEAN), {**USUAL, "own_disk_hangs": 2, "own_disk_answers": 3, **AWAY}
)


class Found(NamedTuple):
    """A schedule that breaks a rule, as short as it was made."""

    seed: int
    shape: Shape
    steps: Schedule
    rests: bool
    violation: ViolationError

    def __str__(self) -> str:
        ending = "then comes to rest" if self.rests else "then ends"
        lines = [f"seed {self.seed}: {self.violation}", f"{self.shape}", f"steps, {ending}:"]
        return "\n".join([*lines, *(f"    {name!r}, {number}" for name, number in self.steps)])


def made(seed: int, profile: Profile) -> list[Step]:
    """The schedule of a seed."""
    dice = random.Random(seed)
    names = list(profile.weights)
    marks = list(accumulate(profile.weights.values()))
    total = marks[-1]
    return [(names[bisect(marks, dice.random() * total)], dice.randrange(1 << 16)) for _ in range(profile.steps)]


def run(steps: Schedule, shape: Shape, *, rests: bool) -> ViolationError | None:
    """What a schedule breaks, if anything."""
    cluster = Cluster(shape)
    invariants = Invariants(cluster)
    with _watched(invariants):
        try:
            # So that somebody leads when it begins.
            for number in (0, 0, 1, 2):
                converse(cluster, number)
                invariants.check()
            for name, number in steps:
                cluster.now += 1
                ACTIONS[name](cluster, number)
                invariants.check()
            if rests:
                come_to_rest(cluster, invariants)
        except ViolationError as violation:
            return violation
    return None


def search(seeds: range, profile: Profile) -> Found | None:
    """The first seed whose schedule breaks a rule, made shorter."""
    for seed in seeds:
        steps = made(seed, profile)
        rests = seed // len(profile.shapes) % profile.rest_every == 0
        shape = profile.shape(seed)
        violation = run(steps, shape, rests=rests)
        if violation is not None:
            shorter = shortened(steps, shape, violation.rule, rests=rests)
            again = run(shorter, shape, rests=rests)
            assert again is not None, "the same steps break it no more"
            return Found(seed, shape, shorter, rests, again)
    return None


def shortened(steps: Schedule, shape: Shape, rule: str, *, rests: bool) -> Schedule:
    """As few of the steps as break the same rule, found by leaving out ever smaller parts."""
    size = len(steps) // 2
    while size:
        begin = 0
        while begin < len(steps):
            fewer = [*steps[:begin], *steps[begin + size :]]
            violation = run(fewer, shape, rests=rests)
            if violation is not None and violation.rule == rule:
                steps = fewer
            else:
                begin += size
        size //= 2
    return steps


_CAUGHT = CaughtErrors()


@contextmanager
def _watched(invariants: Invariants) -> Iterator[None]:
    """Log nothing, but let exceptions be seen that are caught and logged."""
    product = logging.getLogger("kavka")
    before = product.level, product.propagate
    product.setLevel(logging.ERROR)
    product.propagate = False
    product.addHandler(_CAUGHT)
    _CAUGHT.invariants = invariants
    try:
        yield
    finally:
        _CAUGHT.invariants = None
        product.removeHandler(_CAUGHT)
        product.setLevel(before[0])
        product.propagate = before[1]


def main(arguments: Sequence[str]) -> int:
    seed = int(arguments[0])
    found = search(range(seed, seed + 1), EVERYTHING)
    print(found or f"seed {seed} breaks nothing")
    return found is not None


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
