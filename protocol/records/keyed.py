"""Keys and values of a batch, for readers of compacted topics that need neither headers nor timestamps."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from kavka.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec
from kavka.protocol.records.header import HEADER_SIZE_BYTES, BatchHeader
from kavka.protocol.records.legacy import iter_records_of

KeyedRecord = tuple[int, bytes | None, bytes | None]
"""(offset, key, value)"""
RECORDS_AT_ONCE: Final = 64


def keys_and_values(
    data: bytes, position: int, header: BatchHeader, *, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[KeyedRecord]:
    """The records of the batch at `position`, whose header is `header`; any magic. Raises what `iter_records` does."""
    done = 0
    if header.magic == 2 and header.codec == Codec.NONE:
        place, end = position + HEADER_SIZE_BYTES, position + header.size_bytes
        while done < header.count:
            count = min(header.count - done, RECORDS_AT_ONCE)
            read = small_records(data, place, end, header.base_offset, header.last_offset_delta, count)
            if read is None:
                break
            found, place = read
            yield from found
            done += count
        else:
            if place == end:
                return
    for record in islice(iter_records_of(data, position, header, limit_bytes), done, None):
        yield record.offset, record.key, record.value


def small_records(
    data: bytes, position: int, end: int, base_offset: int, last_offset_delta: int, count: int
) -> tuple[list[KeyedRecord], int] | None:
    """`count` records from `position` on, uncompressed, and where they end; None unless all are of the plainest form.

    That is: every length fits into two bytes, there are no headers, and the timestamp is the batch's, or near it. Such
    records are read at a quarter of the price of `parse_records`, which finds out what is wrong with others, if
    anything is.
    """
    found: list[KeyedRecord] = []
    try:
        for _ in range(count):
            size = data[position]
            position += 1
            if size >= 0x80:
                size = size & 0x7F | data[position] << 7
                position += 1
            record_end = position + (size >> 1)
            offset_delta = data[position + 2]
            # Attributes are nobody's; a timestamp delta of more than a byte stands where no plain record has it.
            if size > _MAX_TWO_BYTES or size & 1 or data[position + 1] >= 0x80:
                return None
            position += 3
            if offset_delta >= 0x80:
                offset_delta = offset_delta & 0x7F | data[position] << 7
                position += 1
            size = data[position]
            position += 1
            if size >= 0x80:
                size = size & 0x7F | data[position] << 7
                position += 1
            if size > _MAX_TWO_BYTES or size & 1 or offset_delta > _MAX_TWO_BYTES or offset_delta & 1:
                return None
            start = position
            position += size >> 1
            key = data[start:position]
            size = data[position]
            position += 1
            if size >= 0x80:
                size = size & 0x7F | data[position] << 7
                position += 1
            if size == 1:
                value = None
            elif size > _MAX_TWO_BYTES or size & 1:
                return None
            else:
                start = position
                position += size >> 1
                value = data[start:position]
            if data[position]:
                return None
            position += 1
            offset_delta >>= 1
            if position != record_end or position > end or offset_delta > last_offset_delta:
                return None
            found.append((base_offset + offset_delta, key, value))
    except IndexError:
        return None
    return found, position


_MAX_TWO_BYTES: Final = 0x3FFF
