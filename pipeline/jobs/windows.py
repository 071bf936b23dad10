"""Windows of event time, and which rows come too late for them: the same arithmetic for a batch and its recomputation.

A row is late when one of its windows was closed before its batch: when the window's end is not after the watermark. The
watermark of a batch is the latest event time of all batches before it, less the delay that is allowed. It is stored
with the state of the batch before, and not derived from anything that may differ the next time: so a batch that comes
again is split as it was, and counted and late rows together are those that were read.
"""

from typing import NamedTuple

from pyspark.sql import Column, functions

NO_WATERMARK_US = -(2**62)
"""Before all times."""
LATE = "late"
WITHOUT_TIME = "without event time"


class Windows(NamedTuple):
    """Of `size_us` microseconds, one each `slide_us`, counted from 1970 on in UTC as Spark's `window` does."""

    size_us: int
    slide_us: int

    def earliest_start(self, time_us: Column) -> Column:
        """Of the windows that hold this time the first one's begin."""
        before = time_us - functions.lit(self.size_us)
        return before - functions.pmod(before, functions.lit(self.slide_us)) + functions.lit(self.slide_us)

    def latest_start(self, time_us: Column) -> Column:
        """And the last one's."""
        return time_us - functions.pmod(time_us, functions.lit(self.slide_us))

    def starts(self, time_us: Column) -> Column:
        """An array of all."""
        slide = functions.lit(self.slide_us)
        return functions.sequence(self.earliest_start(time_us), self.latest_start(time_us), slide)

    def is_late(self, time_us: Column, watermark_us: int) -> Column:
        """Whether a row of this time, or without one, does not count any more."""
        end = self.earliest_start(time_us) + functions.lit(self.size_us)
        return functions.coalesce(end <= functions.lit(watermark_us), functions.lit(True))


def micros(column: Column) -> Column:
    """An event time as microseconds since 1970; null for none."""
    return functions.unix_micros(column.cast("timestamp"))


def late_reason(time_us: Column) -> Column:
    """Why a row is late, in a word."""
    return functions.when(time_us.isNull(), WITHOUT_TIME).otherwise(LATE)
