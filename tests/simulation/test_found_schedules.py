"""Schedules that broke a rule once, each the only one of many ten thousands that did."""

import pytest

from tests.simulation.cluster import Shape
from tests.simulation.schedules import FOUR, ONE_IS_ENOUGH, UNCLEAN, Schedule, run

LATE_METADATA_OF_A_FORMER_RUN: Schedule = [
    *(("overtake", 57858), ("kill", 48319), ("boot", 64793), ("tick", 55876), ("agree", 46319)),
    *(("order", 46964), ("order", 45812), ("kill", 24206), ("converse", 20138)),
]
"""Its session lost, a broker hears what was sent to the run of its process before."""

NEW_BUT_IN_SYNC: Schedule = [
    *(("overtake", 32233), ("produce", 28053), ("reassign", 45338), ("power_cut", 26161), ("replace_disk", 10048)),
    *(("boot", 20500), ("converse", 56355), ("fetch", 32099), ("agree", 33716), ("expire", 19101)),
    *(("converse", 62639), ("replace_and_restart", 53939)),
]
"""The only replica in sync, which a reassignment still calls new, loses its disk: it led without a record."""

FETCHES_WITHOUT_A_REGISTRATION: Schedule = [
    *(("produce", 10512), ("produce", 39632), ("replace_and_restart", 24257), ("produce", 17693), ("expire", 41693)),
    *(("expire", 10841), ("boot", 3581), ("converse", 2814), ("overtake", 45946), ("produce", 7704)),
    *(("fetch", 36545), ("replace_and_restart", 47235), ("converse", 23117), ("fetch", 5686)),
    ("replace_and_restart", 34860),
]
"""A follower whose session is lost catches up, then loses its disk: its next run came into sync for what it had not."""


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        (LATE_METADATA_OF_A_FORMER_RUN, ONE_IS_ENOUGH),
        (NEW_BUT_IN_SYNC, FOUR),
        (FETCHES_WITHOUT_A_REGISTRATION, UNCLEAN),
    ],
)
def test_what_was_found_once_is_not_found_again(steps: Schedule, shape: Shape) -> None:
    assert run(steps, shape, rests=True) is None
