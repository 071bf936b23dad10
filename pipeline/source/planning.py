"""Ranges cut into tasks, and batches held to limits: arithmetic alone.

Sources: KafkaOffsetRangeCalculator and KafkaMicroBatchStream.rateLimit of spark-sql-kafka.
"""

import math
from collections.abc import Iterable, Mapping

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.offsets import OffsetRange, Offsets


def tasks(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records_per_partition: int | None
) -> list[OffsetRange]:
    """One task for each range that is not empty, or about `min_partitions`, larger ranges cut into more.

    None has more than `max_records_per_partition` offsets.
    """
    cut = [each for each in ranges if each.size]
    if max_records_per_partition is not None:
        cut = [part for each in cut for part in _divided(each, math.ceil(each.size / max_records_per_partition))]
    if min_partitions is None or min_partitions <= len(cut):
        return cut
    total = sum(each.size for each in cut)
    whole = [each for each in cut if _parts(each.size, total, min_partitions) == 1]
    large_total = total - sum(each.size for each in whole)
    for_large = max(min_partitions - len(whole), 1)
    kept = set(whole)
    return [
        part
        for each in cut
        for part in ([each] if each in kept else _divided(each, _parts(each.size, large_total, for_large)))
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    """How many parts a range gets of those wanted, by its share. Halves go up, as Java rounds."""
    return max(math.floor(size / total * wanted + 0.5), 1)


def _divided(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """In parts that are nearly of one size, empty ones left out."""
    found = []
    start = whole.start
    for left in range(parts, 0, -1):
        end = start + (whole.end - start) // left
        if end > start:
            found.append(whole._replace(start=start, end=end))
        start = end
    return found


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Ends so that there are about `most` offsets, each partition having its share, and none nothing at all.

    `start` has each of the partitions, or it is left at its end.
    """
    sizes = {each: end[each] - start[each] for each in end if each in start and end[each] > start[each]}
    total = sum(sizes.values())
    if total <= most:
        return dict(end)
    found = dict(end)
    for each, size in sizes.items():
        share = most * (size / total)
        found[each] = min(end[each], start[each] + (math.ceil(share) if share < 1 else math.floor(share)))
    return found


def limited_by_bytes(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    most_bytes: int,
    bytes_per_offset: Mapping[TopicPartition, float],
) -> Offsets:
    """As `limited`, for about so many bytes: each partition's offsets count by their average size."""
    sizes = {each: end[each] - start[each] for each in end if each in start and end[each] > start[each]}
    total = sum(size * bytes_per_offset.get(each, 0.0) for each, size in sizes.items())
    if total <= most_bytes:
        return dict(end)
    share = most_bytes / total
    found = dict(end)
    for each, size in sizes.items():
        found[each] = min(end[each], start[each] + max(math.floor(size * share), 1))
    return found


def count(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """How many offsets there are between the two, in partitions that both have."""
    return sum(max(end[each] - start[each], 0) for each in end if each in start)
