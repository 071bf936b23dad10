"""Where records of many batches start: found for all shapes of batches, and at no cost for what is only claimed."""

import random
import tracemalloc

import numpy as np
import pytest

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.record_lengths import find_records


def _record(size: int) -> bytes:
    """Of so many bytes with its length, which takes one or two of them."""
    return bytes([size - 1 << 1]) + bytes(size - 1) if size < 65 else _long(size)


def _long(size: int) -> bytes:
    code = size - 2 << 1
    return bytes([code & 0x7F | 0x80, code >> 7]) + bytes(size - 2)


@pytest.mark.parametrize("seed", range(30))
def test_each_record_is_found(seed: int) -> None:
    dice = random.Random(seed)
    body, starts, ends, counts, expected = b"", [], [], [], []
    for _ in range(dice.choice([1, 3, 39, 40, 41, 90])):
        starts.append(len(body))
        counts.append(dice.choice([0, 1, 5, dice.randrange(200)]))
        steady = dice.choice([0, 7, 80])
        for _ in range(counts[-1]):
            expected.append(len(body))
            body += _record(steady or dice.randrange(7, 200))
        ends.append(len(body))
    found = find_records(body, np.array(starts), np.array(ends), np.array(counts))
    assert found.tolist() == expected


@pytest.mark.parametrize("batches", [1, 3, 50])
def test_a_claim_costs_no_memory(batches: int) -> None:
    """A batch of zeros unpacks to thousands of times its size; who believes its count has memory for that no more."""
    size = 1 << 20
    others = [7] * (batches - 1)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordsError):
            find_records(
                bytes(size),
                np.zeros(batches, np.int64),
                np.array([size, *others]),
                np.array([size, *map(bool, others)]),
            )
        assert tracemalloc.get_traced_memory()[1] < 4 * size
    finally:
        tracemalloc.stop()
