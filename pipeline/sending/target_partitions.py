"""Which partition a row goes to: known before it is sent, and the same whenever its batch is written again."""

from collections.abc import Mapping
from typing import Final

import pyarrow
import pyarrow.compute

from kavka.client.producer.partitioners import MURMUR2, PARTITIONERS, KeyHash

BY_KEY: Final = "key"
AS_SOURCE: Final = "source"
WAYS: Final = (BY_KEY, AS_SOURCE)


class PartitionChoice:
    """`way` is "key" (the hash that the client's `partitioner.class` names decides, murmur2 by default as Java's
    producer) or "source" (the number of the row's partition in its source).

    Rows without a key stay together by their source's partition, and lie in the order that they had there; rows that
    have neither go by their value's hash, and without a value to the first one. No chance plays a part: an attempt
    after a crash would else put a row into a partition that has been written already, or has not. Picklable.
    """

    def __init__(self, way: str, settings: Mapping[str, str]) -> None:
        """Raises ValueError for a way, or a partitioner, that is no function of the row."""
        if way not in WAYS:
            raise ValueError(f"partitions are chosen by {' or '.join(WAYS)}, not by {way!r}")
        self.way: Final = way
        name = settings.get("partitioner.class")
        found = MURMUR2 if name is None else PARTITIONERS.get(str(name))
        if not isinstance(found, KeyHash):
            raise ValueError(
                f"partitioner.class={name} does not put a row where it was put before: name murmur2 or crc32"
            )
        self._partitioner: Final = "murmur2" if name is None else str(name)

    def partitions(
        self, count: int, keys: pyarrow.Array, values: pyarrow.Array, sources: pyarrow.Array
    ) -> pyarrow.Array:
        """For each row a number below `count`; `sources` are the numbers of source partitions, null where unknown.

        Raises ValueError when a source's number is not below `count` and is to be kept.
        """
        known = pyarrow.compute.fill_null(sources.cast(pyarrow.int32()), -1)
        if self.way == AS_SOURCE:
            highest = pyarrow.compute.min_max(known)
            if len(known) and (highest["max"].as_py() >= count or highest["min"].as_py() < 0):
                raise ValueError(
                    f"rows of partition {highest['max'].as_py()} cannot keep it: the target has {count} partitions"
                )
            return known
        rest = pyarrow.compute.if_else(
            pyarrow.compute.less(known, 0), self._hashed(values, count), _modulo(known, count)
        )
        return pyarrow.compute.coalesce(self._hashed(keys, count), rest, pyarrow.scalar(0, pyarrow.int32()))

    def _hashed(self, column: pyarrow.Array, count: int) -> pyarrow.Array:
        """Each distinct one once; null for null."""
        found = PARTITIONERS[self._partitioner]
        assert isinstance(found, KeyHash)
        encoded = column.dictionary_encode()
        if isinstance(encoded, pyarrow.ChunkedArray):
            encoded = encoded.combine_chunks()
        numbers = [found.hash_of(each) % count for each in encoded.dictionary.to_pylist()]
        return pyarrow.array(numbers, pyarrow.int32()).take(encoded.indices)


def _modulo(numbers: pyarrow.Array, count: int) -> pyarrow.Array:
    quotients = pyarrow.compute.divide(numbers, pyarrow.scalar(count, pyarrow.int32()))
    return pyarrow.compute.subtract(
        numbers, pyarrow.compute.multiply(quotients, pyarrow.scalar(count, pyarrow.int32()))
    )
