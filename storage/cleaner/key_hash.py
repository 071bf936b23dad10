"""A key's 128-bit fingerprint, for many keys at once: two keys with one fingerprint count as one key.

Up to 128 bytes: two sums, each of the key's 32-bit words and its length times secret random numbers (multilinear
hashing: whatever two keys differ in, over the choice of the numbers they meet with a chance of 2^-66 at most, 2^-126
for most). Longer keys: keyed BLAKE2b. The secrets are drawn anew for each round and never leave the process, so that
nobody can make up a key that takes another one's place.
"""

import hashlib
import secrets
from typing import Final

import numpy as np
import numpy.typing as npt

from kavka.protocol.records.record_lengths import Integers

Fingerprints = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
"""The two halves."""

LONG_KEY_BYTES: Final = 128
_WORD_BYTES: Final = 8
_WORDS: Final = LONG_KEY_BYTES // _WORD_BYTES
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(_WORD_BYTES)] + [(1 << 64) - 1], np.uint64)
"""By the number of a word's bytes that belong to the key."""


class KeyHash:
    """One choice of secrets."""

    __slots__ = ("_factors", "_secret")

    def __init__(self, seed: bytes | None = None) -> None:
        seed = secrets.token_bytes(32) if seed is None else seed
        self._secret = seed
        count = 2 * (2 * _WORDS + 2)
        stream = hashlib.shake_256(seed).digest(8 * count)
        self._factors = np.frombuffer(stream, "<u8").astype(np.uint64).reshape(2, -1)

    def of_keys(self, body: bytes, starts: Integers, sizes: Integers) -> Fingerprints:
        """The fingerprints of the keys at `starts` in `body`, which has eight bytes behind the last one."""
        first, second = self._factors
        lengths = sizes.astype(np.uint64)
        high = first[-1] + first[-2] * lengths
        low = second[-1] + second[-2] * lengths
        words = np.ndarray((len(body) - _WORD_BYTES + 1,), "<u8", body, 0, (1,))
        longest = int(min(sizes.max(initial=0), LONG_KEY_BYTES))
        for number in range((longest + _WORD_BYTES - 1) // _WORD_BYTES):
            done = number * _WORD_BYTES
            left = sizes - done
            some = slice(None) if (left > 0).all() else np.flatnonzero(left > 0)
            word = words[starts[some] + done] & _MASKS[np.minimum(left[some], _WORD_BYTES)]
            below, above = word & _LOW, word >> _HALF
            high[some] += below * first[2 * number] + above * first[2 * number + 1]
            low[some] += below * second[2 * number] + above * second[2 * number + 1]
        for index in np.flatnonzero(sizes > LONG_KEY_BYTES).tolist():
            key = body[int(starts[index]) : int(starts[index] + sizes[index])]
            digest = hashlib.blake2b(key, digest_size=16, key=self._secret).digest()
            high[index] = int.from_bytes(digest[:8], "little")
            low[index] = int.from_bytes(digest[8:], "little")
        return high, low
