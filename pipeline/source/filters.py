"""What a query's filters leave of the ranges to read, by option: `pushdown=true`.

Spark filters the rows by all of them again, so that a range may be wider than a filter. Times narrow a range at its
beginning alone: records need not be in the order of their times, and what lies behind the last one that is early enough
is known to nobody.
"""

import calendar
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.offsets import OffsetRange

_NAMED: Final = ("topic", "partition")


@dataclass(frozen=True)
class Wanted:
    """What rows may pass the filters. Immutable; None stands for all."""

    topics: frozenset[Any] | None = None
    partitions: frozenset[Any] | None = None
    first_offset: int = 0
    end_offset: int = 2**63 - 1
    since_ms: int | None = None

    def has(self, partition: TopicPartition) -> bool:
        """Whether a partition may have such rows."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )


def wanted(filters: Iterable[Filter]) -> Wanted:
    """The filters are all to hold. Those that say nothing of a row's place are passed over."""
    found = Wanted()
    for each in filters:
        found = _narrower(found, each)
    return found


def narrowed(ranges: Sequence[OffsetRange], by: Wanted, bounds: LogBounds) -> list[OffsetRange]:
    """What is left of the ranges."""
    left = [
        each._replace(start=max(each.start, by.first_offset), end=min(each.end, by.end_offset))
        for each in ranges
        if by.has(each.topic_partition)
    ]
    left = [each for each in left if each.size]
    if by.since_ms is None or by.since_ms <= 0:
        return left
    since = bounds.offsets_at({each.topic_partition: by.since_ms for each in left})
    found = []
    for each in left:
        first = since[each.topic_partition]
        if first is not None and first < each.end:
            found.append(each._replace(start=max(each.start, first)))
    return found


def _narrower(found: Wanted, each: Filter) -> Wanted:
    if not isinstance(each, EqualTo | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return found
    if len(each.attribute) != 1:
        return found
    name, value = each.attribute[0], each.value
    if name in _NAMED and isinstance(each, EqualTo | In):
        return _one_of(found, name, value if isinstance(each, In) else (value,))
    if name == "offset" and isinstance(value, int) and not isinstance(each, In):
        return _of_offsets(found, each, value)
    begins = isinstance(each, EqualTo | GreaterThan | GreaterThanOrEqual)
    if begins and name == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
        return replace(found, since_ms=max(_milliseconds_up(value), found.since_ms or 0))
    return found


def _one_of(found: Wanted, name: str, values: Collection[Any]) -> Wanted:
    among = frozenset(values)
    if name == "topic":
        return replace(found, topics=among if found.topics is None else among & found.topics)
    return replace(found, partitions=among if found.partitions is None else among & found.partitions)


def _of_offsets(found: Wanted, each: Filter, value: int) -> Wanted:
    first, end = found.first_offset, found.end_offset
    if isinstance(each, EqualTo):
        first, end = max(first, value), min(end, value + 1)
    elif isinstance(each, GreaterThan | GreaterThanOrEqual):
        first = max(first, value + isinstance(each, GreaterThan))
    else:
        end = min(end, value + isinstance(each, LessThanOrEqual))
    return replace(found, first_offset=first, end_offset=end)


def _milliseconds_up(time: datetime) -> int:
    """Records' times are whole milliseconds: none is between this one and the filter's."""
    microseconds = calendar.timegm(time.utctimetuple()) * 1_000_000 + time.microsecond
    return -(-microseconds // 1000)
