"""What compaction keeps of a stretch of batches, as Kafka 3.9 does.

a record    the last of its key, as far as the map knows; a tombstone until its batch's delete horizon has passed
a batch     with no record left it goes, unless it is the last one of a producer that is known, whose sequence it
            tells, or the last one of the round, which tells where the log goes on: then its header stays
a marker    until none of its transaction's data is left, and from then on until a delete horizon (KIP-534)
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from kavka.protocol.records.batch import Record
from kavka.protocol.records.builder import CONTROL_KEY
from kavka.protocol.records.columns import Batches, Records
from kavka.protocol.records.record_lengths import PADDING_BYTES, Flags, Integers
from kavka.storage.cleaner.key_hash import Fingerprints, KeyHash
from kavka.storage.cleaner.offset_map import OffsetMap
from kavka.storage.cleaner.transactions import CleanedTransactions

_NEVER: Final = (1 << 63) - 1


class Kept(NamedTuple):
    """What stays of a part. The first is by record, the others by batch."""

    records: Flags
    counts: Integers
    """How many records stay."""
    headers: Flags
    """Batches that stay though no record does."""
    new_horizon: Flags
    """Batches that get a delete horizon now."""


class KeepRules:
    """The rules of one round. One thread; batches come in the log's order."""

    __slots__ = ("_end_offset", "_hash", "_last_offsets", "_map", "_now_ms", "_producers", "keyless", "transactions")

    def __init__(
        self,
        offset_map: OffsetMap,
        key_hash: KeyHash,
        transactions: CleanedTransactions,
        producers: Mapping[int, tuple[int, int]],
        end_offset: int,
        now_ms: int,
    ) -> None:
        """`producers`: id -> (last data offset or -1, epoch) of those that are known; `end_offset` of the round."""
        self._map = offset_map
        self._hash = key_hash
        self.transactions = transactions
        self._producers = producers
        self._last_offsets = np.array(sorted({last for last, _ in producers.values() if last >= 0}), np.int64)
        self._end_offset = end_offset
        self._now_ms = now_ms
        self.keyless = 0
        """Records without key that were dropped: a compacted topic has no place for them."""

    def look_at(self, batches: Batches, records: Records) -> Kept:
        """Decide on the next part of the log."""
        thrown_away, unneeded = follow_transactions(self.transactions, batches, records)
        horizons = np.where(batches.has_delete_horizon, batches.base_timestamps, _NEVER)
        control = batches.is_control
        thrown_away |= control & unneeded & (horizons <= self._now_ms)
        keep = self._latest(records, (control | thrown_away)[records.batch], (horizons > self._now_ms)[records.batch])
        keep |= control[records.batch]
        keep &= ~thrown_away[records.batch]
        counts = np.bincount(records.batch[keep], minlength=len(batches))
        tombstones = np.bincount(records.batch[keep & ~records.has_value], minlength=len(batches)) > 0
        return Kept(
            keep,
            counts,
            (counts == 0) & self._tells_an_end(batches),
            (counts > 0) & (tombstones | (control & unneeded)) & ~batches.has_delete_horizon,
        )

    def keeps(self, record: Record, tombstones_stay: bool) -> bool:
        """Decide on a record of an old format."""
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            self.keyless += 1
            return False
        latest = self._map.find(fingerprints_of(self._hash, [record.key]))[0]
        return record.offset >= latest and (record.value is not None or tombstones_stay)

    def _latest(self, records: Records, decided: Flags, tombstones_stay: Flags) -> Flags:
        """Which records are the last of their keys; `decided`: those that need no answer."""
        keep: Flags = records.offsets > self._map.latest_offset
        keyed = records.key_sizes >= 0
        self.keyless += int(np.count_nonzero(~keyed & ~keep & ~decided))
        asked = np.flatnonzero(~keep & ~decided & keyed & (records.has_value | tombstones_stay))
        if len(asked):
            keys = self._hash.of_keys(bytes(records.body), records.key_starts[asked], records.key_sizes[asked])
            keep[asked] = records.offsets[asked] >= self._map.find(keys)
        return keep

    def _tells_an_end(self, batches: Batches) -> Flags:
        tells: Flags = batches.last_offsets + 1 == self._end_offset
        possible = np.isin(batches.last_offsets, self._last_offsets) | batches.is_control
        for number in np.flatnonzero((batches.producer_ids >= 0) & possible).tolist():
            known = self._producers.get(int(batches.producer_ids[number]))
            if known is None:
                continue
            last_data_offset, epoch = known
            if last_data_offset >= 0:
                tells[number] |= batches.last_offsets[number] == last_data_offset
            else:
                tells[number] |= bool(batches.is_control[number]) and batches.producer_epochs[number] == epoch
        return tells


def follow_transactions(transactions: CleanedTransactions, batches: Batches, records: Records) -> tuple[Flags, Flags]:
    """(batches whose data was aborted, control batches that nothing needs any more)"""
    aborted = np.zeros(len(batches), np.bool_)
    unneeded = np.zeros(len(batches), np.bool_)
    control = batches.is_control
    for number in np.flatnonzero(control | batches.is_transactional).tolist():
        producer_id, last_offset = int(batches.producer_ids[number]), int(batches.last_offsets[number])
        if not control[number]:
            aborted[number] = transactions.on_data(producer_id, last_offset)
            continue
        kind = _control_type(batches, records, number)
        if kind in (0, 1, None):
            is_abort = None if kind is None else kind == 0
            unneeded[number] = transactions.on_marker(producer_id, last_offset, is_abort)
    return aborted, unneeded


def fingerprints_of(key_hash: KeyHash, keys: list[bytes]) -> Fingerprints:
    """Of keys that come one by one."""
    sizes = np.array([len(key) for key in keys], np.int64)
    body = b"".join(keys) + bytes(PADDING_BYTES)
    return key_hash.of_keys(body, np.cumsum(sizes) - sizes, sizes)


def _control_type(batches: Batches, records: Records, number: int) -> int | None:
    """0: abort, 1: commit; None of a batch that is empty."""
    if not batches.counts[number]:
        return None
    first = int(batches.counts[:number].sum())
    start = int(records.key_starts[first])
    if records.key_sizes[first] < CONTROL_KEY.size:
        return -1
    return int(CONTROL_KEY.unpack_from(records.body, start)[1])
