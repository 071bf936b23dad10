"""Sequences, duplicates, epochs and transactions of producers on one partition; their snapshots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.errors import ErrorCode
from kavka.storage import producer_snapshots
from kavka.storage.append_result import AppendError
from kavka.storage.producer_snapshots import CorruptSnapshotError
from kavka.storage.producer_state import MAX_SEQUENCE, BatchPlaced, ProducerEntry, ProducerStates
from kavka.storage.refused_batches import MAX_REFUSED

DAY_MS = 86_400_000


class Writer:
    """Appends to producer states as a log would."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.offset = 0

    def write(
        self, sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 1, transactional: bool = False
    ) -> BatchPlaced | None:
        placed = self.states.check(producer_id, epoch, sequence, count, transactional)
        if placed is None:
            last = self.offset + count - 1
            self.states.record(producer_id, epoch, sequence, self.offset, last, 1000, transactional)
            self.offset = last + 1
        return placed

    def refusal(self, sequence: int, *, epoch: int = 0, transactional: bool = False) -> ErrorCode:
        with pytest.raises(AppendError) as caught:
            self.write(sequence, epoch=epoch, transactional=transactional)
        return caught.value.code

    def end(self, *, aborted: bool, producer_id: int = 1) -> object:
        self.offset += 1
        return self.states.complete(producer_id, 0, 0, self.offset - 1, 1000, aborted)


@pytest.mark.parametrize("first", [0, 1, 77, MAX_SEQUENCE])
def test_an_unknown_producer_may_begin_anywhere(first: int) -> None:
    writer = Writer()
    assert writer.write(first) is None
    assert writer.write(0 if first == MAX_SEQUENCE else first + 1) is None


def test_each_of_the_last_five_batches_is_recognised_and_no_older_one() -> None:
    writer = Writer()
    for number in range(7):
        writer.write(2 * number, count=2)

    for number in range(2, 7):
        placed = writer.write(2 * number, count=2)
        assert placed is not None
        assert (placed.first_offset, placed.last_offset) == (2 * number, 2 * number + 1)
    assert writer.refusal(2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.offset == 14


def test_a_gap_and_a_changed_repetition_are_refused() -> None:
    writer = Writer()
    writer.write(0, count=3)

    assert writer.refusal(4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.refusal(1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.refusal(0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.write(3) is None


def test_sequences_wrap_within_a_batch_and_between_batches() -> None:
    writer = Writer()
    writer.write(MAX_SEQUENCE - 1, count=4)
    assert writer.write(2) is None
    repeated = writer.write(MAX_SEQUENCE - 1, count=4)
    assert repeated is not None
    assert repeated.last_sequence == 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    writer = Writer()
    writer.write(5)
    assert writer.refusal(6, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.write(0, epoch=1) is None
    assert writer.refusal(1, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_holds_the_first_unstable_offset_until_its_marker_is_replicated() -> None:
    writer = Writer()
    writer.write(0)
    writer.write(0, producer_id=2, transactional=True)
    writer.write(0, producer_id=3, transactional=True)
    assert writer.states.first_unstable_offset == 1

    writer.end(aborted=False, producer_id=2)
    assert writer.states.first_unstable_offset == 1
    writer.states.replicated_to(writer.offset)
    assert writer.states.first_unstable_offset == 2
    completed = writer.end(aborted=True, producer_id=3)
    assert completed == (3, 2, 4, True)
    writer.states.replicated_to(4)
    assert writer.states.first_unstable_offset == 2
    writer.states.replicated_to(5)
    assert writer.states.first_unstable_offset == -1


def test_data_outside_an_open_transaction_is_refused() -> None:
    writer = Writer()
    writer.write(0, transactional=True)
    assert writer.refusal(1) == ErrorCode.INVALID_TXN_STATE
    assert writer.write(1, transactional=True) is None


def test_a_marker_of_a_stale_coordinator_is_refused() -> None:
    writer = Writer()
    writer.write(0, transactional=True)
    writer.states.complete(1, 0, 5, 1, 1000, False)
    with pytest.raises(AppendError) as caught:
        writer.states.check_marker(1, 0, 4)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_silent_producers_expire_but_not_with_a_transaction_open() -> None:
    writer = Writer()
    writer.write(0)
    writer.write(0, producer_id=2, transactional=True)

    assert writer.states.remove_expired(1000 + DAY_MS - 1, DAY_MS) == 0
    assert writer.states.remove_expired(1000 + DAY_MS, DAY_MS) == 1
    assert [status.producer_id for status in writer.states.statuses()] == [2]
    assert writer.write(500) is None


def _entry(
    producer_id: int,
    epoch: int,
    batch: tuple[int, int, int] | None,
    timestamp_ms: int,
    coordinator_epoch: int,
    txn: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    if batch is not None:
        last_sequence, delta, first_offset = batch
        first_sequence = (last_sequence - delta) & MAX_SEQUENCE
        entry.batches.append(
            BatchPlaced(first_sequence, last_sequence, first_offset, first_offset + delta, timestamp_ms)
        )
    entry.last_timestamp_ms, entry.coordinator_epoch, entry.txn_first_offset = timestamp_ms, coordinator_epoch, txn
    return entry


entries = st.builds(
    _entry,
    st.integers(0, 1 << 60),
    st.integers(0, 32767),
    st.none() | st.tuples(st.integers(0, MAX_SEQUENCE), st.integers(0, 1000), st.integers(0, 1 << 60)),
    st.integers(-1, 1 << 60),
    st.integers(-1, 1000),
    st.integers(-1, 1 << 60),
)


def _plain(entry: ProducerEntry) -> tuple[object, ...]:
    return tuple(getattr(entry, name) for name in ProducerEntry.__slots__)


@given(st.lists(entries, max_size=5))
def test_a_snapshot_comes_back_as_it_went(producers: list[ProducerEntry]) -> None:
    back = producer_snapshots.decode(producer_snapshots.encode(producers))
    assert [_plain(entry) for entry in back] == [_plain(entry) for entry in producers]


@given(st.data())
def test_a_spoiled_snapshot_is_recognised(data: st.DataObject) -> None:
    good = bytearray(producer_snapshots.encode([_entry(1, 0, (5, 2, 10), 99, 0, -1)]))
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(CorruptSnapshotError):
        producer_snapshots.decode(bytes(good[:cut]))
    good[cut] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptSnapshotError):
        producer_snapshots.decode(bytes(good))


def test_what_the_disk_refused_makes_only_what_comes_behind_it_wait() -> None:
    writer = Writer()
    writer.write(MAX_SEQUENCE - 3, count=4)
    refused = writer.states.refused
    refused.note(1, 0, 0, 1000)

    assert writer.refusal(5) == ErrorCode.KAFKA_STORAGE_ERROR
    assert writer.refusal(MAX_SEQUENCE - 8) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.refusal(5, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert writer.write(0) is None
    assert writer.refusal(5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_the_disk_refused_of_an_unknown_producer_is_forgotten_with_time() -> None:
    writer = Writer()
    writer.states.refused.note(1, 0, 7, 1000)
    writer.states.remove_expired(1000 + DAY_MS - 1, DAY_MS)
    assert writer.refusal(8) == ErrorCode.KAFKA_STORAGE_ERROR

    writer.states.remove_expired(1000 + DAY_MS, DAY_MS)

    assert writer.write(8) is None


def test_refused_batches_are_remembered_of_so_many_producers_only() -> None:
    writer = Writer()
    for producer_id in range(MAX_REFUSED + 1):
        writer.states.refused.note(producer_id, 0, 0, 1000)

    assert writer.write(3, producer_id=0) is None
    with pytest.raises(AppendError):
        writer.write(3, producer_id=1)
    assert len(writer.states.refused.by_producer) == MAX_REFUSED
