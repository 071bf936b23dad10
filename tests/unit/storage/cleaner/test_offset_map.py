"""The map of keys: the last offset of each, within its memory; fingerprints tell keys apart."""

import random
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.storage.cleaner.kept_records import fingerprints_of
from kavka.storage.cleaner.key_hash import LONG_KEY_BYTES, KeyHash
from kavka.storage.cleaner.offset_map import SLOT_BYTES, OffsetMap

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
HASH = KeyHash(bytes(32))


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@PATIENT
@given(st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=60), min_size=1, max_size=6))
def test_each_key_has_the_offset_that_was_put_last(rounds: list[list[bytes]]) -> None:
    table = OffsetMap(SLOT_BYTES * 1000, 0.9)
    expected: dict[bytes, int] = {}
    offset = 0
    for keys in rounds:
        assert table.put(fingerprints_of(HASH, keys), np.arange(offset, offset + len(keys))) == len(keys)
        expected.update(zip(keys, range(offset, offset + len(keys)), strict=True))
        offset += len(keys)

    assert table.size == len(expected)
    assert table.latest_offset == offset - 1
    assert table.find(fingerprints_of(HASH, list(expected))).tolist() == list(expected.values())
    assert table.find(fingerprints_of(HASH, [b"something else, and longer"])).tolist() == [-1]


def test_a_table_filled_to_its_limit_still_finds_everything() -> None:
    table = OffsetMap(SLOT_BYTES * 1000, 0.9)
    keys = [b"%d" % number for number in range(2000)]

    taken = table.put(fingerprints_of(HASH, keys), np.arange(2000))

    assert 850 <= taken <= 900
    assert table.size == taken <= table.most_entries == 900
    assert table.latest_offset == taken - 1
    found = table.find(fingerprints_of(HASH, keys))
    assert found[:taken].tolist() == list(range(taken))
    assert set(found[taken:].tolist()) == {-1}


@pytest.mark.parametrize("distinct", [1, 3, 4])
def test_even_a_tiny_table_takes_a_key(distinct: int) -> None:
    table = OffsetMap(1, 0.9)
    keys = [b"%d" % (number % distinct) for number in range(50)]
    assert 1 <= table.put(fingerprints_of(HASH, keys), np.arange(50)) <= 50
    assert table.size == 1


def test_the_table_takes_no_more_memory_than_it_was_given() -> None:
    table = OffsetMap(1 << 20, 0.9)
    held = sum(getattr(table, name).nbytes for name in ("_high", "_low", "_offsets"))
    assert held <= 1 << 20


def test_keys_of_one_byte_of_difference_have_different_fingerprints() -> None:
    chance = random.Random(1)
    keys = {chance.randbytes(size) for size in (0, 1, 7, 8, 9, 31, 127, 128, 129, 1000) for _ in range(20)}
    keys |= {key + b"\0" for key in keys} | {b"\0" * size for size in range(200)}
    several = sorted(keys)
    high, low = fingerprints_of(HASH, several)
    assert len(set(zip(high.tolist(), low.tolist(), strict=True))) == len(several)
    assert len(set(high.tolist())) == len(set(low.tolist())) == len(several)


def test_a_fingerprint_does_not_depend_on_the_keys_beside() -> None:
    keys = [b"a", b"b" * 9, b"c" * LONG_KEY_BYTES, b"d" * 500, b""]
    together = list(zip(*(half.tolist() for half in fingerprints_of(HASH, keys)), strict=True))
    alone = [tuple(int(half[0]) for half in fingerprints_of(HASH, [key])) for key in keys]
    assert together == alone


def test_secrets_are_drawn_anew() -> None:
    assert fingerprints_of(KeyHash(), [b"k"])[0] != fingerprints_of(KeyHash(), [b"k"])[0]


@pytest.mark.parametrize("byte_order", ["big", "little"])
def test_counters_spread_over_the_table_whatever_the_secrets(byte_order: Literal["big", "little"]) -> None:
    keys = [number.to_bytes(8, byte_order) for number in range(4000)]
    table = OffsetMap(SLOT_BYTES * 64, 1.0)
    for seed in range(300):
        high, low = fingerprints_of(KeyHash(seed.to_bytes(32, "big")), keys)
        for probe in (0, 1, 2):
            buckets = np.bincount(table._probed(high, low, probe), minlength=64)
            assert buckets.min() > 10, seed
            assert buckets.max() < 200, seed
