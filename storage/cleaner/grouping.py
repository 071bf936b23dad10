"""Which segments become one: neighbours, as long as all of them together fit into one segment."""

from collections.abc import Iterable
from typing import Final, NamedTuple

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1


class SegmentSizes(NamedTuple):
    """What of a segment counts for grouping."""

    base_offset: int
    next_base_offset: int
    """Where the following segment begins, or where the cleanable part ends."""
    size_bytes: int
    index_bytes: int
    time_index_bytes: int


def group_segments(segments: Iterable[SegmentSizes], segment_bytes: int, index_bytes: int) -> list[list[SegmentSizes]]:
    """Neighbours whose sizes add up to no more than a segment's: log, each index, and offsets in 31 bits."""
    groups: list[list[SegmentSizes]] = []
    log = index = time_index = 0
    for segment in segments:
        log += segment.size_bytes
        index += segment.index_bytes
        time_index += segment.time_index_bytes
        if (
            not groups
            or log > segment_bytes
            or index > index_bytes
            or time_index > index_bytes
            or (segment.size_bytes and segment.next_base_offset - 1 - groups[-1][0].base_offset > MAX_RELATIVE_OFFSET)
        ):
            groups.append([])
            log, index, time_index = segment.size_bytes, segment.index_bytes, segment.time_index_bytes
        groups[-1].append(segment)
    return groups
