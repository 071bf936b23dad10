"""Which epoch began where, and what followers are told about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.storage import leader_epochs, partition_metadata
from kavka.storage.leader_epochs import CorruptEpochsError, LeaderEpochs
from kavka.storage.partition_metadata import CorruptPartitionMetadataError


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (3, 50)),
        (4, (4, 99)),
        (5, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20), (4, 50)])
    assert epochs.end_offset_for(asked, 99) == answer


def test_no_epochs_know_nothing() -> None:
    assert LeaderEpochs().end_offset_for(0, 10) == (-1, -1)
    assert LeaderEpochs().epoch_for(5) == -1


def test_a_new_epoch_drops_what_it_contradicts() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20), (4, 50)])
    assert epochs.assign(5, 15)
    assert epochs.entries == ((1, 10), (5, 15))
    assert not epochs.assign(5, 20)


def test_truncation_at_both_ends() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20), (4, 50)])
    assert epochs.truncate_from_end(50)
    assert epochs.entries == ((1, 10), (3, 20))
    assert epochs.truncate_from_start(15)
    assert epochs.entries == ((1, 15), (3, 20))
    assert epochs.truncate_from_start(20)
    assert list(epochs.entries) == [(3, 20)]
    assert not epochs.truncate_from_start(20)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1000)), max_size=20))
def test_epochs_and_offsets_always_ascend_and_survive_the_file(assigned: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, offset in assigned:
        epochs.assign(epoch, offset)

    for (epoch, start), (next_epoch, next_start) in zip(epochs.entries, epochs.entries[1:], strict=False):
        assert epoch < next_epoch
        assert start < next_start
        assert epochs.epoch_for(next_start - 1) == epoch
    assert leader_epochs.decode(epochs.encode()).entries == epochs.entries


@pytest.mark.parametrize(
    "text", [b"0", b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\nx y\n", b"0\n1\n0\n", b"\xff\xfe", b"0\n1\n-1 5\n"]
)
def test_a_file_that_is_no_checkpoint_is_recognised(text: bytes) -> None:
    with pytest.raises(CorruptEpochsError):
        leader_epochs.decode(text)


def test_a_topic_id_is_written_as_kafka_does() -> None:
    topic_id = bytes.fromhex("5365f6f67ca4436ed9e0972ad8fd8f3f")
    text = partition_metadata.encode(topic_id)
    assert text.startswith(b"version: 0\ntopic_id: U2X29nyk")
    assert partition_metadata.decode(text) == topic_id


@pytest.mark.parametrize(
    "text", [b"", b"version: 1\ntopic_id: U2X29nykQ7a34JX2D92-Pw\n", b"version: 0\n", b"version: 0\ntopic_id: short\n"]
)
def test_metadata_without_a_topic_id_is_recognised(text: bytes) -> None:
    with pytest.raises(CorruptPartitionMetadataError):
        partition_metadata.decode(text)
