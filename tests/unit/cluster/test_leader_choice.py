"""Who may lead, for any assignment, in-sync replicas and live brokers."""

from hypothesis import given
from hypothesis import strategies as st

from kavka.cluster.controller.leader_choice import (
    Elected,
    elect_after_failure,
    elect_first,
    elect_for_reassignment,
    elect_for_shutdown,
    elect_preferred,
)

brokers = st.integers(1, 5)
assignments = st.lists(brokers, min_size=1, max_size=5, unique=True)
sets = st.sets(brokers)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[int], list[int], set[int]]:
    assignment = draw(assignments)
    return assignment, draw(st.lists(st.sampled_from(assignment), unique=True)), draw(sets)


@given(situations(), st.booleans())
def test_after_a_failure_the_first_live_replica_in_sync_leads(
    situation: tuple[list[int], list[int], set[int]], allow_unclean: bool
) -> None:
    assignment, isr, live = situation
    elected = elect_after_failure(assignment, isr, live, allow_unclean)
    clean = [each for each in assignment if each in isr and each in live]
    if clean:
        assert elected == Elected(clean[0], tuple(each for each in isr if each in live))
    elif allow_unclean and live.intersection(assignment):
        leader = next(each for each in assignment if each in live)
        assert elected == Elected(leader, (leader,), is_unclean=True)
    else:
        assert elected is None


@given(situations())
def test_whoever_is_elected_lives_and_is_in_the_new_isr(
    situation: tuple[list[int], list[int], set[int]],
) -> None:
    assignment, isr, live = situation
    outcomes = [
        elect_after_failure(assignment, isr, live, allow_unclean=True),
        elect_preferred(assignment, isr, live),
        elect_first(assignment, live),
        elect_for_shutdown(assignment, isr, live, stopping=()),
    ]
    for elected in outcomes:
        assert elected is None or (elected.leader in live and elected.leader in elected.isr)


@given(situations(), sets)
def test_a_broker_that_stops_neither_leads_nor_stays_in_sync(
    situation: tuple[list[int], list[int], set[int]], stopping: set[int]
) -> None:
    assignment, isr, live = situation
    elected = elect_for_shutdown(assignment, isr, live, stopping)
    if elected is None:
        assert not live.intersection(isr) - stopping
    else:
        assert not stopping.intersection(elected.isr)


@given(situations(), sets, st.integers(-1, 5))
def test_a_reassigned_partition_is_led_and_in_sync_on_its_new_replicas_alone(
    situation: tuple[list[int], list[int], set[int]], live: set[int], leader: int
) -> None:
    target, isr, strangers = situation
    elected = elect_for_reassignment(target, [*isr, *(each + 10 for each in strangers)], live, leader)
    able = [each for each in target if each in isr and each in live]
    if elected is None:
        assert able == []
    else:
        assert elected == Elected(leader if leader in able else able[0], tuple(isr))


def test_the_preferred_replica_leads_only_in_sync() -> None:
    assert elect_preferred([1, 2], [2, 1], [1, 2]) == Elected(1, (2, 1))
    assert elect_preferred([1, 2], [2], [1, 2]) is None
    assert elect_preferred([1, 2], [1, 2], [2]) is None


def test_a_new_partition_is_in_sync_on_all_live_replicas() -> None:
    assert elect_first([3, 1, 2], [1, 2]) == Elected(1, (1, 2))
    assert elect_first([3], [1]) is None
