"""Replaying an internal log: fast, in slices, and as far as possible whatever it holds.

    data batch           its records, in order; those of a transactional batch are the producer's, pending
    control batch        the end of that producer's transaction
    unknown key type     a later Kafka's: skipped and counted
    anything broken      raises: state that is half known must not be served

Loading runs while the broker serves, and the interpreter lets one thread run at a time: after each slice it is given
up, so that a request waits for a slice at most.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kavka.coordinator.ports import InternalLog, Shard
from kavka.coordinator.runtime.record_decoding import RecordDecoder
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.internal.record_codec import UnknownRecordTypeError
from kavka.protocol.records.batch import ControlType, control_type_of, iter_records, read_header
from kavka.protocol.records.errors import TruncatedBatchError
from kavka.protocol.records.header import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from kavka.protocol.records.keyed import RECORDS_AT_ONCE, KeyedRecord, keys_and_values, small_records

SLICE_NS: Final = 500_000
PAUSE_S: Final = 0.00005
"""Long enough for a thread that waits for the GIL to get it."""
RECORDS_BETWEEN_LOOKS: Final = 32

log = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """What a load came to."""

    records: int
    unknown_records: int
    bytes: int


class Slices:
    """Yields the GIL to other threads whenever a slice is up. Owned by one thread."""

    __slots__ = ("_end_ns", "_now_ns", "_pause")

    def __init__(
        self, now_ns: Callable[[], int] = time.perf_counter_ns, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._now_ns = now_ns
        self._pause = pause
        self._end_ns = now_ns() + SLICE_NS

    def breathe(self) -> None:
        """Call this after every little piece of work."""
        if self._now_ns() >= self._end_ns:
            self._pause(PAUSE_S)
            self._end_ns = self._now_ns() + SLICE_NS


def replay_log(
    internal_log: InternalLog,
    shard: Shard,
    decoder: RecordDecoder,
    buffer_bytes: int,
    is_wanted: Callable[[], bool],
    slices: Slices,
) -> Loaded | None:
    """Replay the log, up to its end as it is when that is reached; None when it isn't wanted any longer.

    Raises BrokerError for what cannot be read, DecodeError for what cannot be understood, and what the shard raises.
    """
    replay = _Replay(shard, decoder, is_wanted, slices)
    offset = internal_log.start_offset
    read_bytes = 0
    while offset < internal_log.end_offset:
        if not is_wanted():
            return None
        try:
            data = internal_log.read(offset, buffer_bytes)
        except BrokerError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and offset < internal_log.start_offset:
                # Retention or DeleteRecords took it meanwhile.
                offset = internal_log.start_offset
                continue
            raise
        slices.breathe()
        next_offset = replay.batches(data, offset)
        if next_offset <= offset:
            if not is_wanted():
                # It was given up between the read and the first batch.
                return None
            raise DecodeError(f"the log ends at {internal_log.end_offset}, and has nothing to read at {offset}")
        offset = next_offset
        read_bytes += len(data)
    return Loaded(replay.records - replay.unknown, replay.unknown, read_bytes) if is_wanted() else None


class _Replay:
    """One load's counts and parts."""

    def __init__(self, shard: Shard, decoder: RecordDecoder, is_wanted: Callable[[], bool], slices: Slices) -> None:
        self.shard = shard
        self.decoder = decoder
        self.is_wanted = is_wanted
        self.slices = slices
        self.records = 0
        self.unknown = 0

    def batches(self, data: bytes, from_offset: int) -> int:
        """Replay the whole batches of `data`; the offset behind the last one."""
        next_offset = from_offset
        position, size = 0, len(data)
        while position < size and self.is_wanted():
            plain = self._plain_batches(data, position)
            if plain is not None:
                position, next_offset = plain
                continue
            try:
                header = read_header(data, position)
            except TruncatedBatchError:
                break
            if header.is_control:
                self._end_transaction(data, position, header)
            else:
                producer = Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
                self._records(keys_and_values(data, position, header), producer)
            position += header.size_bytes
            next_offset = header.next_offset
        return next_offset

    def _plain_batches(self, data: bytes, position: int) -> tuple[int, int] | None:
        """Replay batches of the commonest form, until a slice is full; None if the one at `position` isn't of it.

        A commit of a few partitions is a batch of its own, so that a log may hold a million of them.
        """
        size = len(data)
        next_offset = -1
        records: list[KeyedRecord] = []
        while size - position >= HEADER_SIZE_BYTES and len(records) < RECORDS_BETWEEN_LOOKS:
            base_offset, length, _, magic, _, attributes, last_delta, _, _, _, _, _, count = _unpack(data, position)
            end = position + LOG_OVERHEAD_BYTES + length
            if magic != 2 or attributes & _NOT_PLAIN or end > size or not 0 <= count <= RECORDS_AT_ONCE:
                break
            found = small_records(data, position + HEADER_SIZE_BYTES, end, base_offset, last_delta, count)
            if found is None or found[1] != end:
                break
            records += found[0]
            position = end
            next_offset = base_offset + last_delta + 1
        if next_offset < 0:
            return None
        self._records(records, None)
        return position, next_offset

    def _records(self, records: Iterable[KeyedRecord], producer: Producer | None) -> None:
        replay, decode = self.shard.replay, self.decoder.decode
        count = 0
        for offset, key, value in records:
            count += 1
            if key is None:
                raise DecodeError(f"record at offset {offset} has no key")
            try:
                record = decode(key, value)
            except UnknownRecordTypeError as unknown:
                self.unknown += 1
                if self.unknown == 1:
                    log.warning("a record of an unknown type is left alone offset=%d error=%r", offset, str(unknown))
                continue
            replay(record, offset, producer)
            if not count % RECORDS_BETWEEN_LOOKS:
                self.slices.breathe()
        self.records += count
        self.slices.breathe()

    def _end_transaction(self, data: bytes, position: int, header: BatchHeader) -> None:
        for record in iter_records(data, position):
            ended = control_type_of(record)
            if ended is not None:
                self.shard.replay_end_marker(header.producer_id, header.producer_epoch, ended is ControlType.COMMIT)


_NOT_PLAIN: Final = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT
_unpack: Final = BATCH_HEADER.unpack_from
