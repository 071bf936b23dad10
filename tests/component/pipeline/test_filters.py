"""What filters leave of the ranges that a batch reads."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.filters import narrowed, wanted
from kavka.pipeline.source.offsets import OffsetRange
from tests.support.scripted_logs import ScriptedLogs

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
RANGES = [OffsetRange("a", 0, 0, 100), OffsetRange("a", 1, 50, 100), OffsetRange("b", 0, 0, 10)]
LOGS = ScriptedLogs({}, {}, {A0: 30, A1: 20, B0: None})


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([], RANGES),
        ([EqualTo(("topic",), "a")], RANGES[:2]),
        ([In(("partition",), (0, 7))], [RANGES[0], RANGES[2]]),
        ([EqualTo(("topic",), "a"), EqualTo(("topic",), "b")], []),
        ([EqualTo(("partition",), 1), EqualTo(("partition",), 0)], []),
        ([GreaterThanOrEqual(("offset",), 60)], [OffsetRange("a", 0, 60, 100), OffsetRange("a", 1, 60, 100)]),
        ([GreaterThan(("offset",), 98)], [OffsetRange("a", 0, 99, 100), OffsetRange("a", 1, 99, 100)]),
        ([LessThan(("offset",), 5)], [OffsetRange("a", 0, 0, 5), OffsetRange("b", 0, 0, 5)]),
        ([LessThanOrEqual(("offset",), 0)], [OffsetRange("a", 0, 0, 1), OffsetRange("b", 0, 0, 1)]),
        ([EqualTo(("offset",), 9)], [OffsetRange("a", 0, 9, 10), OffsetRange("b", 0, 9, 10)]),
        (
            [GreaterThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC))],
            [OffsetRange("a", 0, 30, 100), OffsetRange("a", 1, 50, 100)],
        ),
        ([LessThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC))], RANGES),
        ([Not(EqualTo(("topic",), "a")), IsNotNull(("offset",)), EqualTo(("value",), b"x")], RANGES),
        ([GreaterThan(("timestamp", "x"), 5), GreaterThan(("offset",), "x"), In(("offset",), (1,))], RANGES),
    ],
)
def test_filters_about_places_narrow_ranges(filters: list[Filter], left: list[OffsetRange]) -> None:
    assert narrowed(RANGES, wanted(filters), LOGS) == left


def test_times_are_asked_for_in_milliseconds_of_utc() -> None:
    cest = timezone(timedelta(hours=2))
    since = wanted([GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, 2, 0, 1, 1, tzinfo=cest))])

    assert since.since_ms == 1001
