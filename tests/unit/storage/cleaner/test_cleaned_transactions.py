"""Which transactions' data goes, and when a marker isn't needed any more."""

from kavka.storage.cleaner.transactions import CleanedTransactions
from kavka.storage.log_answers import AbortedTransaction

ABORTED = AbortedTransaction(producer_id=1, first_offset=10, last_offset=20, last_stable_offset=21)
LATER = AbortedTransaction(producer_id=1, first_offset=30, last_offset=40, last_stable_offset=41)


def test_data_of_an_aborted_transaction_goes_and_its_marker_stays_with_its_index_entry() -> None:
    passed = CleanedTransactions([LATER, ABORTED])
    assert not passed.on_data(1, 5)
    assert passed.on_data(1, 10)
    assert not passed.on_data(2, 12)
    assert passed.on_data(1, 15)
    assert not passed.on_marker(1, 20, aborted=True)
    assert passed.take_still_aborted() == [ABORTED]
    assert passed.take_still_aborted() == []
    assert not passed.on_data(1, 25)
    assert passed.on_data(1, 30)


def test_markers_of_transactions_without_data_are_not_needed() -> None:
    passed = CleanedTransactions([ABORTED])
    assert passed.on_marker(1, 20, aborted=True)
    assert passed.on_marker(2, 21, aborted=False)
    assert passed.on_marker(3, 22, aborted=True)
    assert passed.take_still_aborted() == []


def test_a_commit_needs_its_marker_while_data_is_there() -> None:
    passed = CleanedTransactions([])
    passed.on_data(2, 1)
    assert not passed.on_marker(2, 2, aborted=False)
    assert passed.on_marker(2, 3, aborted=False)


def test_an_empty_control_batch_is_not_needed() -> None:
    assert CleanedTransactions([]).on_marker(1, 5, aborted=None)
