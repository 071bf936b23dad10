"""Which offset is the last of each key: a hash table of fixed size, in numpy, filled and asked for many keys at once.

A slot has a key's 128-bit fingerprint and an offset: 24 bytes. Collisions are settled by open addressing; the next
slot to look at is picked by both halves of the fingerprint, so that no clusters form.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from kavka.protocol.records.record_lengths import Integers
from kavka.storage.cleaner.key_hash import Fingerprints

SLOT_BYTES: Final = 24
_EMPTY: Final = -1
_HALF: Final = np.uint64(32)
_ONE: Final = np.uint64(1)
_MOST: Final = (1 << 64) - 1
_SPREAD: Final = 0x9E3779B97F4A7C15
"""Odd, with bits all over: even small numbers lead far away."""


class OffsetMap:
    """Fingerprint -> offset. One thread."""

    __slots__ = ("_high", "_low", "_offsets", "_slots", "latest_offset", "most_entries", "size")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Takes `memory_bytes`, as pages get touched, and holds `load_factor` of its slots at most."""
        slots = max(2, min(memory_bytes // SLOT_BYTES, (1 << 32) - 1))
        self._slots = np.uint64(slots)
        self._high = np.zeros(slots, np.uint64)
        self._low = np.zeros(slots, np.uint64)
        # Offsets are kept plus one, so that fresh pages of zeros are empty slots.
        self._offsets = np.zeros(slots, np.int64)
        self.most_entries = max(1, min(int(slots * load_factor), slots - 1))
        self.size = 0
        self.latest_offset = -1
        """Records at or below are in the map; later ones aren't, and nothing is known of them."""

    def put(self, keys: Fingerprints, offsets: Integers) -> int:
        """Enter keys with their offsets, of which the last one of each key counts; how many, from the first on.

        Fewer than all: the map is full.
        """
        done = 0
        while done < len(offsets):
            room = self.most_entries - self.size
            # Filling the last places one by one would take as many rounds: a little earlier is as good.
            if room <= 0 or (done and room < min(self.most_entries // 256, len(offsets) - done)):
                break
            end = min(done + room, len(offsets))
            self._put((keys[0][done:end], keys[1][done:end]), offsets[done:end])
            done = end
        if done:
            self.latest_offset = max(self.latest_offset, int(offsets[done - 1]))
        return done

    def find(self, keys: Fingerprints) -> Integers:
        """The offset of each key; -1 for keys that aren't there."""
        high, low = keys
        found = np.full(len(high), _EMPTY, np.int64)
        left = np.arange(len(high))
        for probe in range(len(self._offsets) * 64):
            slots = self._probed(high[left], low[left], probe)
            offsets = self._offsets[slots]
            same = (self._high[slots] == high[left]) & (self._low[slots] == low[left]) & (offsets != 0)
            found[left[same]] = offsets[same] - 1
            left = left[~same & (offsets != 0)]
            if not len(left):
                break
        return found

    def _put(self, keys: Fingerprints, offsets: Integers) -> None:
        high, low = keys
        left = np.arange(len(offsets))
        probe = 0
        while len(left):
            slots = self._probed(high[left], low[left], probe)
            empty = self._offsets[slots] == 0
            if empty.any():
                # Of several keys that want one slot the last one written has it, in all three columns.
                claimed, claiming = slots[empty], left[empty]
                self._high[claimed] = high[claiming]
                self._low[claimed] = low[claiming]
                self._offsets[claimed] = offsets[claiming] + 1
                winners = self._offsets[claimed] == offsets[claiming] + 1
                self.size += int(np.count_nonzero(winners))
            same = (self._high[slots] == high[left]) & (self._low[slots] == low[left])
            self._offsets[slots[same]] = offsets[left[same]] + 1
            left = left[~same]
            probe += 1

    def _probed(self, high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64], probe: int) -> npt.NDArray[np.int64]:
        """Where to look in try number `probe`: the upper bits of a sum, scaled to the number of slots.

        A sum of products spreads keys that differ by little (counters) over few values of its upper bits, for one
        choice of secrets in eighty: so all bits of `high` go into them.
        """
        mixed = (high ^ (high >> _HALF)) * np.uint64(_SPREAD)
        if probe:
            mixed += (low | _ONE) * np.uint64(probe * _SPREAD & _MOST)
        return (((mixed >> _HALF) * self._slots) >> _HALF).astype(np.int64)
