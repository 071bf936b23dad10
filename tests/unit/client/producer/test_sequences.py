"""Sequence numbers of a partition: how far ahead of what has no answer, and what is known of what was given up."""

from io import BytesIO

import pytest

from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.sequences import REMEMBERED_BATCHES, Identity, Sequences
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.appending import BatchWriter

BIRDS = TopicPartition("birds", 0)
RECORDS = 3


@pytest.fixture
def sequences() -> Sequences:
    """Of a producer whose first batch was appended."""
    made = Sequences(transactional=False)
    made.identified(Identity(7, 0))
    made.acked(numbered(made), 0)
    return made


def batch() -> ProducerBatch:
    made = ProducerBatch(BIRDS, BatchWriter(BytesIO(), 10_000), 0, 0.0)
    for _ in range(RECORDS):
        made.put(0, None, b"value", (), None)
    return made


def numbered(sequences: Sequences) -> ProducerBatch:
    made = batch()
    sequences.number(made)
    return made


def may_send_another(sequences: Sequences) -> bool:
    return sequences.may_send(BIRDS, batch())


def test_nothing_goes_out_so_far_ahead_that_brokers_forget_what_has_no_answer(sequences: Sequences) -> None:
    silent = numbered(sequences)
    for number in range(1, REMEMBERED_BATCHES):
        assert may_send_another(sequences)
        # By another leader.
        sequences.acked(numbered(sequences), number * RECORDS)
    assert not may_send_another(sequences)
    assert sequences.may_send(BIRDS, silent)
    sequences.acked(silent, RECORDS)
    assert may_send_another(sequences)


def test_the_parts_of_a_batch_count_as_so_many(sequences: Sequences) -> None:
    numbered(sequences)
    large, later = numbered(sequences), numbered(sequences)
    parts = [batch() for _ in range(3)]
    sequences.split(large, parts)
    assert [each.ordinal for each in (*parts, later)] == [2, 3, 4, 5]
    assert not may_send_another(sequences)


def test_who_begins_anew_has_nothing_behind_him(sequences: Sequences) -> None:
    first = numbered(sequences)
    for number in range(1, REMEMBERED_BATCHES):
        sequences.acked(numbered(sequences), number * RECORDS)
    sequences.require_bump(BIRDS)
    assert sequences.bump()
    assert (first.producer_epoch, first.base_sequence) == (1, 0)
    assert may_send_another(sequences)


def test_of_several_that_were_given_up_the_last_one_counts(sequences: Sequences) -> None:
    """Those that wait for another try expire before those in a request, which may be older."""
    older, younger, next_one = (numbered(sequences) for _ in range(3))
    sequences.given_up(younger)
    sequences.given_up(older)
    # It follows at once what nobody knows of: both were lost.
    assert sequences.can_retry(next_one, is_out_of_order=True, log_start_offset=-1)
    assert sequences.is_bump_required


def is_unknown(sequences: Sequences, refused: ProducerBatch, log_start_offset: int = 10) -> bool:
    """Whether a batch is tried again, of whose producer the broker knows nothing."""
    return sequences.can_retry(refused, is_out_of_order=False, log_start_offset=log_start_offset)


def test_who_is_unknown_while_something_is_before_it_waits_for_that(sequences: Sequences) -> None:
    first, second = numbered(sequences), numbered(sequences)
    assert is_unknown(sequences, second)
    assert not sequences.is_bump_required
    assert is_unknown(sequences, first, log_start_offset=-1)
    assert not sequences.is_bump_required, "the answer does not say whether records were deleted"
    assert is_unknown(sequences, first)
    assert sequences.is_bump_required


def test_who_is_forgotten_again_begins_anew_again(sequences: Sequences) -> None:
    first, second = numbered(sequences), numbered(sequences)
    assert is_unknown(sequences, first)
    assert sequences.bump()
    sequences.acked(first, 11)
    assert (second.producer_epoch, second.base_sequence) == (1, RECORDS)
    assert is_unknown(sequences, second, log_start_offset=20)
    assert sequences.bump()
    assert (second.producer_epoch, second.base_sequence) == (2, 0)


@pytest.mark.parametrize(("log_start_offset", "is_retried"), [(RECORDS - 1, False), (RECORDS, True)])
def test_in_a_transaction_records_that_were_deleted_are_no_reason_to_abort(
    log_start_offset: int, is_retried: bool
) -> None:
    made = Sequences(transactional=True)
    made.identified(Identity(7, 3))
    made.acked(numbered(made), 0)
    first, second = numbered(made), numbered(made)
    assert is_unknown(made, first, log_start_offset) is is_retried
    assert not made.is_bump_required
    assert made.identity == Identity(7, 3)
    if is_retried:
        assert (first.base_sequence, second.base_sequence) == (0, RECORDS)
        # Its answer is of before.
        assert is_unknown(made, second, log_start_offset)
        assert second.base_sequence == RECORDS
    else:
        made.failed(first, is_producer_unknown=True)
        made.failed(second, is_producer_unknown=True)
        again = numbered(made)
        assert (again.producer_epoch, again.base_sequence) == (3, 0)


def test_what_fails_behind_a_batch_of_an_unknown_producer_takes_nothing_from_a_row_that_begins_anew() -> None:
    made = Sequences(transactional=True)
    made.identified(Identity(7, 3))
    made.acked(numbered(made), 0)
    first, second, third = (numbered(made) for _ in range(3))
    made.failed(first, is_producer_unknown=True)
    made.failed(second, is_producer_unknown=False)
    made.failed(third, is_producer_unknown=False)
    assert numbered(made).base_sequence == 0


def test_who_was_unknown_and_is_known_by_a_later_batch_goes_on_behind_that() -> None:
    """A broker that knows nothing of a producer may take any sequence."""
    made = Sequences(transactional=True)
    made.identified(Identity(7, 3))
    made.acked(numbered(made), 0)
    first, second = numbered(made), numbered(made)
    made.failed(first, is_producer_unknown=True)
    made.acked(second, 2 * RECORDS)
    again = numbered(made)
    assert again.base_sequence == second.next_sequence
    assert made.of(BIRDS).is_next(again.base_sequence)


def test_who_was_reset_and_is_out_of_order_though_it_is_next_begins_anew_again(sequences: Sequences) -> None:
    """The broker has forgotten the epoch, and then taken late records of the one before."""
    first, second, third = (numbered(sequences) for _ in range(3))
    assert is_unknown(sequences, first)
    assert sequences.bump()
    sequences.acked(first, 11)
    assert sequences.can_retry(third, is_out_of_order=True, log_start_offset=-1)
    assert not sequences.is_bump_required, "what is before it comes first"
    assert sequences.can_retry(second, is_out_of_order=True, log_start_offset=-1)
    assert sequences.is_bump_required
