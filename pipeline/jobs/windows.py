"""Windows of event time, and which rows come too late for them: the same arithmetic for a batch and its recomputation.

A row is late when one of its windows was closed before its batch: when the window's end is not after the watermark. The
watermark of a batch is the latest event time of all batches before it, less the delay that is allowed. It is stored
with the state of the batch before, and not derived from anything that may differ the next time: so a batch that comes
again is split as it was, and counted and late rows together are those that were read.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DateType

NO_WATERMARK_US = -(2**62)
"""Before all times."""
_YEAR_1_US = -62_135_596_800_000_000
_YEAR_10000_US = 253_402_300_800_000_000
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


def sayable_us(room_us: int) -> tuple[int, int]:
    """The first and last time in the years 1 to 9999 that have this much room on both sides, for a window's ends.

    Others cannot be written, and one far ahead would close every window.
    """
    return _YEAR_1_US + room_us, _YEAR_10000_US - 1 - room_us


def micros(rows: DataFrame, name: str, room_us: int = 0) -> Column:
    """A column's event time as microseconds since 1970; null for none, and for one outside of `sayable_us`.

    Null as well for what is no time, a text or a number that is none: nobody's record shall end a job.
    """
    column = functions.col(name)
    if isinstance(rows.select(column).schema.fields[0].dataType, DateType):
        # One far beyond has more microseconds than a number holds, by which Spark's cast fails.
        first, last = (functions.lit(text).cast("date") for text in ("0001-01-01", "9999-12-31"))
        column = functions.when(column.between(first, last), column)
    time_us = functions.unix_micros(column.try_cast("timestamp"))
    first_us, last_us = sayable_us(room_us)
    return functions.when(time_us.between(functions.lit(first_us), functions.lit(last_us)), time_us)


def late_reason(time_us: Column) -> Column:
    """Why a row is late, in a word."""
    return functions.when(time_us.isNull(), WITHOUT_TIME).otherwise(LATE)
