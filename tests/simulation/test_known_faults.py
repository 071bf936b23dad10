"""With its guard taken out, the simulator finds each of the faults that Kafka once had; with it, nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.simulation.known_faults import GHOST_IN_SYNC, KNOWN_FAULTS, KnownFault, controller_expels_nobody
from tests.simulation.schedules import USUAL, Profile, run, search

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
