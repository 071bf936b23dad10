"""What happens to a segment at start, over every combination of what is known about it."""

import itertools

import pytest

from kavka.storage.recovery import Action, SegmentFinding, decide

ALL = [SegmentFinding(*flags) for flags in itertools.product([False, True], repeat=5)]


@pytest.mark.parametrize("finding", ALL, ids=lambda f: "".join("01"[flag] for flag in f))
def test_every_combination_has_the_action_that_loses_least(finding: SegmentFinding) -> None:
    action = decide(finding)

    at_risk = not finding.stopped_cleanly and not finding.below_recovery_point
    end_unknown = finding.is_last and not (finding.indexes_good and finding.tail_whole)
    assert (action is Action.RECOVER) == (at_risk or end_unknown)
    if not at_risk and not finding.is_last:
        assert action is (Action.KEEP if finding.indexes_good else Action.REBUILD)


def test_what_was_fsynced_and_sealed_is_never_cut() -> None:
    for finding in ALL:
        if finding.below_recovery_point and not finding.is_last:
            assert decide(finding) is not Action.RECOVER
