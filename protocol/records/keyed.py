"""Keys and values of a batch, for readers of compacted topics that need neither headers nor timestamps."""

from collections.abc import Iterator

from kavka.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec
from kavka.protocol.records.header import HEADER_SIZE_BYTES, BatchHeader
from kavka.protocol.records.legacy import iter_records_of


def keys_and_values(
    data: bytes, position: int, header: BatchHeader, *, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of each record in the batch at `position`, whose header is `header`; any magic.

    Records as small as most are read in place, at a third of the price of a `Record`. Raises what `iter_records` does.
    """
    if header.magic == 2 and header.codec == Codec.NONE and header.count == 1:
        small = _single(data, position + HEADER_SIZE_BYTES, position + header.size_bytes, header)
        if small is not None:
            yield small
            return
    for record in iter_records_of(data, position, header, limit_bytes):
        yield record.offset, record.key, record.value


def _single(data: bytes, position: int, end: int, header: BatchHeader) -> tuple[int, bytes | None, bytes | None] | None:
    """The only record of an uncompressed batch, if all its lengths fit into two bytes; else None.

    That is what a commit of one partition looks like: the batch has a length already, so few ways remain to be wrong.
    """
    try:
        size = data[position]
        position += 1
        if size >= 0x80:
            size = size & 0x7F | data[position] << 7
            position += 1
        if size & 1 or size > 0x3FFF or position + (size >> 1) != end:
            return None
        # Attributes, the timestamp delta and the offset delta; zero in a batch of one.
        if data[position + 1] or data[position + 2]:
            return None
        position += 3
        size = data[position]
        position += 1
        if size >= 0x80:
            size = size & 0x7F | data[position] << 7
            position += 1
        if size & 1 or size > 0x3FFF:
            return None
        key_end = position + (size >> 1)
        key = data[position:key_end]
        size = data[key_end]
        position = key_end + 1
        if size >= 0x80:
            size = size & 0x7F | data[position] << 7
            position += 1
        if size == 1:
            value = None
        elif size & 1 or size > 0x3FFF:
            return None
        else:
            value = data[position : position + (size >> 1)]
            position += size >> 1
        if position + 1 != end or data[position]:
            return None
    except IndexError:
        return None
    return header.base_offset, key, value
