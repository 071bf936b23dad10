"""A target that would refuse, change or soon delete old records is found out by its settings."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from kavka.pipeline.sending.target_checks import Load, load_of, problems_of
from tests.support.lakes import FIRST_DAY_US, entry

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
LOAD = Load(NOW_MS - 10 * DAY_MS, NOW_MS - DAY_MS, 5_000, frozenset({0, 1, 2}))
FIT = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": "3600000",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}


def problems(
    changed: Mapping[str, str] = MappingProxyType({}), count: int = 3, way: str = "source", load: Load = LOAD
) -> list[str]:
    settings = {**FIT, **changed}
    return problems_of(settings, count, load, way, NOW_MS)


def test_a_topic_that_keeps_all_is_fit() -> None:
    assert problems() == []
    assert problems({"retention.ms": str(11 * DAY_MS)}) == []
    assert problems(count=1, way="key") == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"message.timestamp.type": "LogAppendTime"}, "set CreateTime"),
        ({"message.timestamp.before.max.ms": str(DAY_MS)}, "refuses records of 864000000 ms ago"),
        ({"retention.ms": str(DAY_MS)}, "retention.ms deletes records of 864000000 ms ago"),
        ({"retention.bytes": "1000"}, "retention.bytes keeps less than the 5000 bytes"),
    ],
)
def test_what_takes_records_or_their_times_away_is_told(changed: dict[str, str], problem: str) -> None:
    found = problems(changed)
    assert len(found) == 1
    assert problem in found[0]


def test_times_ahead_and_missing_partitions_are_told_together() -> None:
    ahead = LOAD._replace(newest_ms=NOW_MS + DAY_MS)
    assert [each.split(" ")[0] for each in problems(count=2, load=ahead)] == ["it", "message.timestamp.after.max.ms"]


def test_retention_does_not_count_where_nothing_is_deleted() -> None:
    assert problems({"cleanup.policy": "compact", "retention.ms": "1000", "retention.bytes": "1"}) == []
    assert problems({"cleanup.policy": "compact,delete", "retention.ms": "1000"}) != []


def test_rows_without_times_have_none_that_are_wrong() -> None:
    assert problems({"retention.ms": "1000"}, load=LOAD._replace(oldest_ms=None, newest_ms=None)) == []


def test_rows_that_are_not_sent_are_no_load() -> None:
    first_ms = FIRST_DAY_US // 1000
    files = {0: [entry("data/a.parquet", 0, 3600), entry("data/b.parquet", 3600, 7200)]}
    assert load_of(files, None, None) == Load(first_ms, first_ms + 7_199_000, 72_000, frozenset({0}))
    load = load_of(files, first_ms + 60_000, first_ms + 120_000)
    assert (load.oldest_ms, load.newest_ms) == (first_ms + 60_000, first_ms + 119_999)
    # Those before 1970 go as rows of now.
    without = [replace(files[0][0], min_timestamp_us=-1000)]
    assert load_of({0: without}, None, None).oldest_ms is None
    assert load_of({0: without}, 5, None).oldest_ms == 5
