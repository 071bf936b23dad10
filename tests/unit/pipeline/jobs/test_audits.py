"""An audit finds what a lake lost, what it has twice and what it made up, and knows what is no fault."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka.pipeline.jobs.audit import comparing
from kavka.pipeline.jobs.audit.logs import AuditError, Places, RecordsGoneError
from kavka.pipeline.jobs.audit.report import MOST_RANGES, AuditReport, Offsets
from kavka.pipeline.jobs.audit.run import audit
from tests.support.lakes import FIRST_DAY_US, TOPIC, append, new_manifest, rows, written_lake


class Log:
    """A log with records at these offsets; `gone`: retention takes the others while they are read."""

    def __init__(
        self,
        bounds: range | None,
        offsets: Sequence[int] | None = None,
        *,
        compacted: bool = False,
        gone: int = 0,
        later_us: int = 0,
        partitions: int = 1,
    ) -> None:
        self._later_us = later_us
        self._partitions = partitions
        self._bounds = bounds
        self._offsets = np.array(list(bounds or ()) if offsets is None else offsets, np.int64)
        self._compacted = compacted
        self._gone = gone

    def bounds(self, topic: str, partition: int) -> range | None:
        return self._bounds if partition in self.partitions(topic) else None

    def partitions(self, topic: str) -> list[int]:
        return list(range(self._partitions)) if topic == TOPIC and self._bounds is not None else []

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[Places]:
        for batch in np.array_split(self._offsets[(self._offsets >= start) & (self._offsets < end)], 3):
            if self._gone > start and len(batch) and batch[-1] >= 5:
                raise RecordsGoneError(self._gone)
            yield Places(batch, FIRST_DAY_US + self._later_us + batch * 1_000_000)

    def is_compacted(self, topic: str) -> bool:
        return self._compacted


def audited(lake: Path, log: Log) -> AuditReport:
    report = audit(lake, log)
    json.dumps(report.to_json())
    assert list(report.lines())[-1] == ("clean" if report.is_clean else "NOT CLEAN")
    return report


def test_a_whole_lake_is_clean_and_its_lag_is_no_fault(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10), (0, 10, 30)])
    report = audited(tmp_path, Log(range(42)))
    (found,) = report.partitions
    assert (report.is_clean, report.exit_code) == (True, 0)
    assert (found.log_rows, found.lake_rows, found.lag, found.unverified_rows) == (30, 30, 12, 0)


def test_what_is_missing_twice_or_made_up_is_named(tmp_path: Path) -> None:
    manifest = written_lake(tmp_path, [(0, 0, 10), (0, 13, 20), (0, 25, 30)])
    again = append(manifest, 18, 20, query="again").add[0].path
    pyarrow.parquet.write_table(rows([18, 19]), tmp_path / again)
    report = audited(tmp_path, Log(range(40), [*range(5), *range(6, 40)]))
    (found,) = report.partitions
    assert found.missing.to_json() == {"count": 8, "ranges": [[10, 12], [20, 24]]}
    assert found.duplicates.to_json() == {"count": 2, "ranges": [[18, 19]]}
    assert found.extra.to_json() == {"count": 1, "ranges": [[5, 5]]}
    assert report.exit_code == 1
    assert found.problems == ["missing: 8 (10-12, 20-24)", "twice: 2 (18-19)", "not in the log: 1 (5)"]


def test_records_before_the_archive_began_are_not_missing(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 100, 110)])
    assert audited(tmp_path, Log(range(50, 110))).is_clean


def test_below_the_logs_start_archived_ranges_have_to_be_whole(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10), (0, 10, 30)])
    report = audited(tmp_path, Log(range(20, 30)))
    assert (report.is_clean, report.partitions[0].unverified_rows, report.partitions[0].log_rows) == (True, 20, 10)


def test_a_hole_below_the_logs_start_is_told(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    for start, end, query in ((0, 10, "first"), (15, 20, "second")):
        path = tmp_path / append(manifest, start, end, query=query).add[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(rows(range(start, end)), path)
    assert audited(tmp_path, Log(range(18, 20))).partitions[0].problems == ["never archived: 10-14"]
    assert audited(tmp_path, Log(range(13, 20))).partitions[0].problems == [
        "missing: 2 (13-14)",
        "never archived: 10-12",
    ]


def test_a_topic_that_is_gone_leaves_nothing_to_compare_with(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10)])
    report = audited(tmp_path, Log(None))
    (found,) = report.partitions
    assert found.problems == ["not verified: there is no such partition; the lake has 10 rows of it"]
    assert (report.exit_code, found.unverified_rows, found.lag) == (1, 10, 0)


def test_a_topic_made_anew_and_longer_is_told_by_its_times(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10)])
    (found,) = audited(tmp_path, Log(range(100), later_us=1000)).partitions
    assert found.problems == ["of another time in the log: 10 (0-9)"]
    assert audited(tmp_path, Log(range(100), later_us=999)).is_clean


def test_a_partition_that_the_lake_has_nothing_of_is_told(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10)])
    report = audited(tmp_path, Log(range(10), partitions=2))
    assert [each.problems for each in report.partitions] == [[], ["not in the lake: the log has offsets 0-9"]]
    assert (report.exit_code, report.partitions[1].lag) == (1, 10)


def test_a_topic_that_the_lake_does_not_have_is_refused(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10)])
    with pytest.raises(AuditError, match=f"the lake has no topic visitz; it has {TOPIC}"):
        audit(tmp_path, Log(range(10)), ["visitz"])


def test_a_lake_beyond_the_logs_end_belongs_to_another_topic(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10)])
    (found,) = audited(tmp_path, Log(range(4))).partitions
    assert found.problems == ["not in the log: 6 (4-9)"]


def test_a_compacted_topic_may_have_fewer_records_than_the_lake_and_no_others(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10), (0, 12, 20)])
    (found,) = audited(tmp_path, Log(range(20), [3, 9, 19], compacted=True)).partitions
    assert (found.problems, found.compacted_rows) == ([], 15)
    (found,) = audited(tmp_path, Log(range(20), [3, 11, 19], compacted=True)).partitions
    assert found.problems == ["missing: 1 (11)"]


def test_retention_during_the_audit_is_no_fault(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 30)])
    (found,) = audited(tmp_path, Log(range(30), gone=12)).partitions
    assert (found.problems, found.log_rows, found.unverified_rows, found.lake_rows) == ([], 18, 12, 30)


def test_a_file_with_other_rows_than_the_manifest_says_is_told(tmp_path: Path) -> None:
    manifest = written_lake(tmp_path, [(0, 0, 10)])
    pyarrow.parquet.write_table(rows(range(9)), tmp_path / next(iter(manifest.state.files)))
    (found,) = audited(tmp_path, Log(range(10))).partitions
    assert found.problems == ["missing: 1 (9)", "files hold 9 rows, the manifest counts 10"]


def test_rows_are_counted_by_time_on_both_sides(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 3590, 3610)])
    (found,) = audited(tmp_path, Log(range(3580, 3620))).partitions
    assert found.buckets.to_json() == [
        {"start": "2024-10-04T00:00:00+00:00", "log_rows": 10, "lake_rows": 10},
        {"start": "2024-10-04T01:00:00+00:00", "log_rows": 10, "lake_rows": 10},
    ]


@settings(deadline=None, max_examples=25)
@given(
    in_log=st.sets(st.integers(0, 60)), files=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 10)), max_size=4)
)
def test_windows_of_any_size_find_the_same(
    in_log: set[int], files: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = tmp_path_factory.mktemp("lake")
    manifest = new_manifest(lake)
    lake_rows: list[int] = []
    for number, (start, count) in enumerate(files):
        path = lake / append(manifest, start, start + count, query=f"q{number}").add[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(rows(range(start, start + count)), path)
        lake_rows += range(start, start + count)
    log = Log(range(61), sorted(in_log))

    found = []
    for window in (1, 7, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparing, "WINDOW", window)
            found.append(audit(lake, log).to_json())

    assert found[0] == found[1] == found[2]
    if files:
        start, end = min(lake_rows), max(lake_rows) + 1
        (whole,) = audit(lake, log).partitions
        assert whole.missing.count == len({each for each in in_log if start <= each < end} - set(lake_rows))
        assert whole.duplicates.count == len({each for each in lake_rows if lake_rows.count(each) > 1})
        assert whole.extra.count == len(set(lake_rows) - in_log)
        assert whole.lake_rows == len(lake_rows)


def test_only_the_first_ranges_are_kept() -> None:
    offsets = Offsets()
    for start in range(0, 1000, 10):
        offsets.add(np.arange(start, start + 9, 2))
    assert offsets.count == 500
    assert len(offsets.to_json()["ranges"]) == MOST_RANGES  # type: ignore[arg-type]  # a list, as the line before says
    assert str(offsets) == "500 (0, 2, 4, ...)"
