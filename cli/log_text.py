"""A `.log` file as text, a line for each batch and record, in the words of Kafka's DumpLogSegments."""

from collections.abc import Iterator
from pathlib import Path

from kavka.cli.index_text import base_offset_of
from kavka.protocol.errors import DecodeError
from kavka.protocol.records.batch import BatchHeader, Record, TimestampType, verify_crc
from kavka.protocol.records.builder import control_type_of, coordinator_epoch_of
from kavka.protocol.records.compression import Codec
from kavka.storage.batch_scan import ScannedBatch, scan_batches
from kavka.storage.files import Files


def log_lines(path: Path, *, print_data_log: bool) -> Iterator[str]:
    """The batches of the file, and with `print_data_log` their records. Raises OSError, ValueError for a wrong name,
    or where there is something and it does not begin with a batch.

    What lies behind the last whole batch is counted; a batch whose records can't be read says why.
    """
    files = Files()
    yield f"Log starting offset: {base_offset_of(path)}"
    fd = files.open(path, read_only=True)
    try:
        size_bytes = files.descriptor_size(fd)
        end = 0
        try:
            for batch in scan_batches(files, fd, 0, size_bytes):
                yield _batch_line(batch)
                if print_data_log:
                    yield from _record_lines(batch)
                end = batch.position + batch.header.size_bytes
        except DecodeError:
            yield f"Found {size_bytes - end} invalid bytes at the end of {path.name}"
            if not end:
                raise ValueError("not a segment, or torn in its first batch") from None
    finally:
        files.close(fd)


def _batch_line(batch: ScannedBatch) -> str:
    header = batch.header
    if header.magic < 2:
        return f"offset: {header.last_offset} {_batch_tail(batch)}"
    horizon = f"OptionalLong[{header.base_timestamp_ms}]" if header.has_delete_horizon else "OptionalLong.empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.partition_leader_epoch} isTransactional: {_java(header.is_transactional)}"
        f" isControl: {_java(header.is_control)} deleteHorizonMs: {horizon} {_batch_tail(batch)}"
    )


def _batch_tail(batch: ScannedBatch) -> str:
    header = batch.header
    return (
        f"position: {batch.position} {_timestamp(header, header.max_timestamp_ms)} size: {header.size_bytes}"
        f" magic: {header.magic} compresscodec: {_codec_name(header.codec)} crc: {header.crc}"
        f" isvalid: {_java(_has_valid_crc(batch))}"
    )


def _record_lines(batch: ScannedBatch) -> Iterator[str]:
    header = batch.header
    try:
        for record in batch.records():
            yield f"| {_record_line(header, record)}"
    except DecodeError as error:
        yield f"| unreadable: {error}"


def _record_line(header: BatchHeader, record: Record) -> str:
    parts = [f"offset: {record.offset} {_timestamp(header, record.timestamp_ms)}"]
    parts.append(f"keySize: {_size(record.key)} valueSize: {_size(record.value)}")
    if header.magic >= 2:
        sequence = -1 if header.base_sequence < 0 else (header.base_sequence + record.offset - header.base_offset)
        parts.append(f"sequence: {sequence & 0x7FFFFFFF if sequence >= 0 else -1}")
        parts.append(f"headerKeys: [{','.join(_printable(key) for key, _ in record.headers)}]")
    if header.is_control:
        marker = control_type_of(record)
        if marker is None:
            return " ".join([*parts, f"controlType: {(record.key or b'').hex()}"])
        return " ".join([*parts, f"endTxnMarker: {marker.name}", f"coordinatorEpoch: {coordinator_epoch_of(record)}"])
    if record.key is not None:
        parts.append(f"key: {_text(record.key)}")
    if record.value is not None:
        parts.append(f"payload: {_text(record.value)}")
    return " ".join(parts)


def _timestamp(header: BatchHeader, timestamp_ms: int) -> str:
    if header.magic == 0:
        return f"NoTimestampType: {timestamp_ms}"
    name = "LogAppendTime" if header.timestamp_type == TimestampType.LOG_APPEND else "CreateTime"
    return f"{name}: {timestamp_ms}"


def _has_valid_crc(batch: ScannedBatch) -> bool:
    try:
        verify_crc(batch.data, batch.start, batch.header)
    except DecodeError:
        return False
    return True


def _codec_name(codec: int) -> str:
    try:
        return Codec(codec).name.lower()
    except ValueError:
        return f"unknown({codec})"


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def _text(field: bytes) -> str:
    return _printable(field.decode("utf-8", "replace"))


def _printable(text: str) -> str:
    """Record bytes are somebody else's: they must not drive the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _java(value: bool) -> str:
    return "true" if value else "false"
