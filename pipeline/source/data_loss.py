"""Records that were to be read and are not there any more: an error, or a warning, by `failOnDataLoss`."""

import logging
from collections.abc import Mapping
from typing import Final

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.errors import DataLossError
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.offsets import OffsetRange, Offsets, listed

_WHAT_TO_DO: Final = (
    "; some records may be lost: aged out by retention, or their topic was deleted or made anew. "
    "failOnDataLoss=false goes on without them"
)
log = logging.getLogger(__name__)


def report_loss(what: str, *, fails: bool) -> None:
    """Say what is gone. Raises DataLossError if that is to end the query."""
    if fails:
        raise DataLossError(what + _WHAT_TO_DO)
    log.warning("records may be lost what=%r", what)


def batch_ranges(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], bounds: LogBounds, *, fails: bool
) -> list[OffsetRange]:
    """What a batch between two checkpointed offsets reads, in the order of partitions; empty ranges left out.

    A partition that only `end` has begins at its first offset. What is missing is reported, as Spark's own source
    does (KafkaOffsetReaderAdmin.getOffsetRangesFromResolvedOffsets). Raises DataLossError.
    """
    begins = {**dict(start), **_of_new_partitions(start, end, bounds, fails=fails)}
    gone = set(start) - set(end)
    if gone:
        report_loss(f"{listed(gone)} is gone", fails=fails)
    ranges = []
    for each in sorted(end):
        if each not in begins:
            continue
        if end[each] < begins[each]:
            report_loss(f"{each} ended at {begins[each]} and now ends at {end[each]}", fails=fails)
        elif end[each] > begins[each]:
            ranges.append(OffsetRange(*each, begins[each], end[each]))
    return ranges


def _of_new_partitions(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], bounds: LogBounds, *, fails: bool
) -> Offsets:
    new = set(end) - set(start)
    if not new:
        return {}
    first = bounds.first_offsets(sorted(new))
    for each in sorted(new):
        if first[each] != 0:
            report_loss(f"the new partition {each} begins at {first[each]}, not at 0", fails=fails)
    return first
