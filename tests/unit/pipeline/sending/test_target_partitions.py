"""Rows go where Java's producer puts them, and to the same partition whenever they are written again."""

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.client.producer.murmur2 import murmur2
from kavka.pipeline.sending.target_partitions import PartitionChoice

COUNTS = st.integers(1, 64)
KEYS = st.lists(st.none() | st.binary(max_size=40), max_size=50)


def chosen(
    choice: PartitionChoice, count: int, keys: list[bytes | None], sources: list[int | None] | None = None
) -> list[int]:
    column = pyarrow.array(keys, pyarrow.binary())
    numbers = pyarrow.array(sources or [None] * len(keys), pyarrow.int32())
    found: list[int] = choice.partitions(count, column, pyarrow.array([b"v"] * len(keys)), numbers).to_pylist()
    return found


@given(COUNTS, KEYS)
def test_a_key_goes_where_the_producer_puts_it(count: int, keys: list[bytes | None]) -> None:
    found = chosen(PartitionChoice("key", {}), count, keys)
    known = {number: (murmur2(key) & 0x7FFF_FFFF) % count for number, key in enumerate(keys) if key is not None}
    assert {number: found[number] for number in known} == known
    assert all(0 <= each < count for each in found)


def test_rows_without_a_key_stay_together_by_their_sources_partition() -> None:
    found = chosen(PartitionChoice("key", {}), 4, [None, None, None, None], [9, 9, 2, 2])
    assert found == [1, 1, 2, 2]


def test_a_row_without_anything_goes_somewhere_too() -> None:
    nothing = pyarrow.nulls(2, pyarrow.binary())
    assert PartitionChoice("key", {}).partitions(
        4, nothing, nothing, pyarrow.nulls(2, pyarrow.int32())
    ).to_pylist() == [0, 0]


def test_rows_without_key_and_source_go_by_their_values() -> None:
    found = chosen(PartitionChoice("key", {}), 4, [None, None])
    assert found == [murmur2(b"v") % 0x8000_0000 % 4] * 2


def test_sources_numbers_are_kept_or_refused() -> None:
    choice = PartitionChoice("source", {})
    assert chosen(choice, 4, [b"a", b"b"], [3, 0]) == [3, 0]
    with pytest.raises(ValueError, match="has 3 partitions"):
        chosen(choice, 3, [b"a", b"b"], [3, 0])
    with pytest.raises(ValueError, match="cannot keep it"):
        chosen(choice, 3, [b"a"], [None])


def test_the_partitioner_that_is_named_decides() -> None:
    by_crc = chosen(PartitionChoice("key", {"partitioner.class": "consistent_random"}), 1000, [b"kavka"])
    assert by_crc != chosen(PartitionChoice("key", {}), 1000, [b"kavka"])


@pytest.mark.parametrize("name", ["round_robin", "random", "mine.Partitioner"])
def test_a_partitioner_that_may_choose_another_one_the_next_time_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name murmur2"):
        PartitionChoice("key", {"partitioner.class": name})
