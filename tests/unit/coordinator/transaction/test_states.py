"""The tables of states: complete, and as Kafka has them."""

import pytest

from kavka.coordinator.transaction.metadata import TransactionMetadata, new_metadata
from kavka.coordinator.transaction.states import (
    AT_REST,
    BY_TEXT,
    END_V1,
    END_V2,
    END_V2_AGAIN,
    PREPARED,
    VALID_PREVIOUS,
    EndOutcome,
    TransactionState,
)

S = TransactionState


def test_every_state_says_which_may_come_before() -> None:
    assert set(VALID_PREVIOUS) == set(TransactionState)


def test_states_have_kafkas_numbers_and_names() -> None:
    assert [(int(state), state.text) for state in TransactionState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]
    assert BY_TEXT["PrepareCommit"] is S.PREPARE_COMMIT


def test_a_decision_is_final() -> None:
    followers = {state for state, before in VALID_PREVIOUS.items() if S.PREPARE_COMMIT in before}
    assert followers == {S.COMPLETE_COMMIT}
    followers = {state for state, before in VALID_PREVIOUS.items() if S.PREPARE_ABORT in before}
    assert followers == {S.COMPLETE_ABORT}


def test_ends_are_decided_only_where_the_transition_is_valid() -> None:
    for table in (END_V1, END_V2, END_V2_AGAIN):
        for (state, committed), outcome in table.items():
            assert state not in PREPARED
            if outcome is EndOutcome.DECIDE:
                target = S.PREPARE_COMMIT if committed else S.PREPARE_ABORT
                assert state in VALID_PREVIOUS[target]
            elif outcome is EndOutcome.FENCED:
                assert (state, committed) == (S.COMPLETE_ABORT, True)
            else:
                assert state is (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT)


@pytest.mark.parametrize("state", list(TransactionState))
@pytest.mark.parametrize(
    ("target", "prepare"),
    [
        (S.EMPTY, lambda each: each.prepare_producer(1000, None, 5)),
        (S.EMPTY, lambda each: each.prepare_rotation(9, 1000, None, 5)),
        (S.ONGOING, lambda each: each.prepare_add([("t", 0)], 2, 5)),
        (S.PREPARE_COMMIT, lambda each: each.prepare_end(True, 2, 5)),
        (S.PREPARE_ABORT, lambda each: each.prepare_end(False, 2, 5)),
    ],
)
def test_a_transition_that_is_not_in_the_table_is_a_mistake_of_ours(
    state: TransactionState, target: TransactionState, prepare: "object"
) -> None:
    transaction = new_metadata("t", 7, 1000, 1)
    transaction.producer_epoch = 3
    transaction.state = state

    if state in VALID_PREVIOUS[target]:
        assert prepare(transaction).state is target  # type: ignore[operator]  # one of the lambdas above
        assert transaction.state is state
    else:
        with pytest.raises(RuntimeError, match="cannot go from"):
            prepare(transaction)  # type: ignore[operator]  # one of the lambdas above


def test_preparing_changes_nothing_and_completing_everything() -> None:
    transaction: TransactionMetadata = new_metadata("t", 7, 1000, 1)
    first = transaction.prepare_producer(2000, None, 5)
    assert transaction.producer_epoch == -1

    transaction.complete(first)
    transaction.complete(transaction.prepare_add([("a", 1), ("b", 0)], 2, 6))
    transaction.complete(transaction.prepare_end(True, 2, 7))

    assert transaction.unmarked == {("a", 1), ("b", 0)}
    assert (transaction.producer_epoch, transaction.last_producer_epoch, transaction.start_ms) == (1, 0, 6)
    transaction.complete(transaction.prepare_complete(8))
    assert transaction.state in AT_REST
    assert (transaction.partitions, transaction.unmarked) == (frozenset(), set())
