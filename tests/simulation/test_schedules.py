"""Whatever happens to a cluster, nothing committed is lost, no epoch goes back, and it finds its way back to rest."""

import os
import random
import time

import pytest

from tests.simulation.schedules import EVERYTHING, THREE, made, run, search

SHARE = 1_500
SOAK_SECONDS = float(os.environ.get("SOAK_SECONDS", "1800"))
SOAK_CHUNK = 500


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_schedule_breaks_a_rule(part: int) -> None:
    found = search(range(part * SHARE, (part + 1) * SHARE), EVERYTHING)
    assert found is None, str(found)


def test_a_seed_is_one_schedule() -> None:
    assert made(7, EVERYTHING) == made(7, EVERYTHING)
    assert made(7, EVERYTHING) != made(8, EVERYTHING)


def test_steps_that_find_nothing_to_do_do_nothing() -> None:
    steps = [("finish", 3), ("serve", 3), ("ghost", 3), ("hear", 3), ("job", 3), ("boot", 3), ("heal", 3)]
    assert run(steps, EVERYTHING.shape(0), rests=True) is None


def test_a_replaced_disk_is_not_forgotten_when_its_broker_was_killed_as_it_copied() -> None:
    steps = [
        ("produce", 32029),
        ("fetch", 64886),
        ("kill", 47566),
        ("fetch", 27842),
        ("expire", 23079),
        ("replace_disk", 26427),
        ("boot", 34905),
        ("control", 23043),
        ("kill", 41825),
    ]
    assert run(steps, THREE, rests=True) is None


@pytest.mark.soak
@pytest.mark.slow
def test_no_schedule_of_many_breaks_a_rule() -> None:
    """SOAK_SECONDS=3600 tries more than 100,000 on a machine that is not busy."""
    first = random.randrange(1 << 40)
    ends_at = time.monotonic() + SOAK_SECONDS
    tried = 0
    while time.monotonic() < ends_at:
        found = search(range(first + tried, first + tried + SOAK_CHUNK), EVERYTHING)
        assert found is None, str(found)
        tried += SOAK_CHUNK
    print(f"{tried} schedules from seed {first} on")
