"""With its guard taken out, the simulator finds each of the faults that Kafka once had; with it, nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.simulation.cluster import Shape
from tests.simulation.known_faults import (
    GHOST_IN_SYNC,
    KNOWN_FAULTS,
    LOST,
    KnownFault,
    calls_all_new_that_are_added,
    controller_expels_nobody,
    judges_leaders_by_the_last_write,
)
from tests.simulation.schedules import THREE, USUAL, Profile, run, search

MOST_SEEDS = 4_000
GUARDED_SEEDS = 100

by_issue = pytest.mark.parametrize("fault", KNOWN_FAULTS, ids=[fault.issue for fault in KNOWN_FAULTS])


@by_issue
def test_a_fault_is_found_without_its_guard(fault: KnownFault) -> None:
    with fault.surroundings(), fault.inject():
        found = search(range(MOST_SEEDS), fault.profile)
        assert found is not None, f"{fault.issue} is not found in {MOST_SEEDS} schedules"
    assert found.violation.rule in fault.rules, str(found)
    # It is the fault that was found: the same steps break nothing with the guard.
    with fault.surroundings():
        assert run(found.steps, found.shape, rests=found.rests) is None, str(found)
    print(f"{fault.issue}, {found}")


@by_issue
def test_the_same_schedules_break_nothing_with_the_guard(fault: KnownFault) -> None:
    with fault.surroundings():
        found = search(range(GUARDED_SEEDS), fault.profile)
    assert found is None, str(found)


@pytest.mark.parametrize("controller", [nullcontext, controller_expels_nobody])
def test_who_is_in_sync_but_not_assigned_leaves_whatever_the_leader_asks_for_first(
    controller: Callable[[], AbstractContextManager[object]],
) -> None:
    with controller():
        assert search(range(60), Profile((GHOST_IN_SYNC,), USUAL, steps=10, rest_every=1)) is None


FORMER_RUN_ASKS = [
    # Broker 1 is the controller, 2 leads, and all three have its first records.
    *(("reassign", 1), ("converse", 0), ("prefer", 0), ("converse", 0)),
    *(("produce", 1), ("produce", 1), ("fetch", 2), ("fetch", 3), ("fetch", 2), ("fetch", 3)),
    # 1 falls behind. What 2 asks for waits at the controller as 2 loses its power, and all its records.
    *(("produce", 1), ("produce", 1), ("fetch", 3), ("fetch", 3), ("tick", 0), ("ask", 0), ("power_cut", 1)),
    # 2 is back before that is written, and the controller ends before it hears of it.
    *(("boot", 0), ("control", 0), ("kill", 0), ("expire", 0), ("converse", 1)),
    # As many records as 3 has in their place, under the same epoch if 2 goes on with it.
    *(("produce", 1), ("produce", 1), ("produce", 1), ("produce", 1), ("fetch", 0), ("fetch", 0)),
]
"""No search finds it: between the leader's power cut and its return, and then the controller's end, nothing else may
happen, and the controller may not be in sync, as that would begin another leader epoch."""


def test_an_isr_that_a_former_run_asked_for_does_not_have_its_leader_go_on_in_its_epoch() -> None:
    with judges_leaders_by_the_last_write():
        violation = run(FORMER_RUN_ASKS, THREE, rests=False)
    assert violation is not None
    assert violation.rule in LOST
    assert run(FORMER_RUN_ASKS, THREE, rests=True) is None


TWO_OF_FOUR = Shape(brokers=4, replicas=(1, 2), min_insync_replicas=1)
ADDED_AND_AWAY = [
    # 1 leads. What it has shall be on 3 and 4 instead; 4 is gone, so that it stays on the way. 3 comes into sync.
    *(("produce", 1), ("produce", 1), ("fetch", 2), ("fetch", 2), ("reassign", 2), ("converse", 0), ("kill", 3)),
    *(("fetch", 5), ("fetch", 2), ("fetch", 5), ("agree", 0), ("fetch", 2), ("fetch", 5), ("agree", 0)),
    # 2 and 1 are gone, and 3, alone in sync, is started without the directory that has it all.
    *(("kill", 1), ("expire", 1), ("converse", 0), ("kill", 0), ("expire", 0), ("converse", 0), ("converse", 0)),
    *(("kill", 0), ("expire", 0), ("boot_without", 2), ("converse", 0), ("converse", 0)),
]
"""No search has found it: a reassignment ends as soon as all that it adds are in sync."""


def test_who_came_into_sync_while_it_was_added_leads_from_no_other_directory() -> None:
    with calls_all_new_that_are_added():
        violation = run(ADDED_AND_AWAY, TWO_OF_FOUR, rests=False)
    assert violation is not None
    assert violation.rule in LOST
    assert run(ADDED_AND_AWAY, TWO_OF_FOUR, rests=True) is None
