"""The figures of `kavka perf`, in the words of Kafka's tools; its throttle and payloads."""

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cli.perf.consuming import Stretch
from kavka.cli.perf.end_to_end import figures
from kavka.cli.perf.latencies import MAX_SAMPLES, Latencies, percentiles
from kavka.cli.perf.payloads import file_payloads, numbers, random_payloads, read_payloads
from kavka.cli.perf.throttle import Throttle
from tests.support.json_documents import assert_golden, document


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moments are shown in the computer's zone: in this one."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_a_window_counts_since_the_last_one_and_the_total_all() -> None:
    latencies = Latencies(1_000, now_ms=10_000)
    for latency_ms in range(1, 101):
        latencies.record(latency_ms, 1_048_576)
    window = latencies.window(15_000)
    assert window.window_line() == (
        "100 records sent, 20.0 records/sec (20.00 MB/sec), 50.5 ms avg latency, 100.0 ms max latency."
    )
    latencies.record(7, 0)
    assert latencies.window(16_000).window_line() == (
        "1 records sent, 1.0 records/sec (0.00 MB/sec), 7.0 ms avg latency, 7.0 ms max latency."
    )
    assert latencies.total(20_100).total_line() == (
        "101 records sent, 10.000000 records/sec (9.90 MB/sec), 50.07 ms avg latency, 100.00 ms max latency, "
        "50 ms 50th, 95 ms 95th, 99 ms 99th, 100 ms 99.9th."
    )
    document("perf-produce", json.dumps([latencies.total(20_100).row()]))


def test_a_steady_state_says_so_and_nothing_at_all_is_no_error() -> None:
    latencies = Latencies(1, now_ms=0, is_steady=True)
    assert latencies.total(0).total_line().startswith("0 steady state records sent, 0.000000 records/sec")
    assert latencies.window(0).window_line().startswith("0 records sent, 0.0 records/sec")


def test_of_many_records_some_latencies_are_kept() -> None:
    latencies = Latencies(4 * MAX_SAMPLES, now_ms=0)
    for latency_ms in range(8):
        latencies.record(latency_ms, 0)
    # The first and the fifth.
    assert latencies.total(1).percentiles_ms == (4, 4, 4, 4)


def test_percentiles_are_taken_where_kafkas_tool_takes_them() -> None:
    assert percentiles(list(range(1_000)), (0.5, 0.95, 0.99, 0.999)) == (500, 950, 990, 999)
    assert percentiles([7.0], (0.5, 1.0)) == (7.0, 7.0)
    assert percentiles([], (0.5,)) == (0.0,)


def test_who_is_ahead_of_the_rate_waits_and_who_is_late_does_not() -> None:
    clock = [100.0]
    slept: list[float] = []

    def pause(duration_s: float) -> None:
        slept.append(duration_s)
        clock[0] += duration_s

    throttle = Throttle(100, lambda: clock[0], pause)
    for done in range(1, 201):
        throttle.wait(done)
    assert clock[0] == pytest.approx(102, abs=0.01)
    clock[0] += 10
    slept.clear()
    throttle.wait(500)
    assert slept == []
    assert not Throttle(-1, lambda: 0.0, pause).is_on


def test_payloads_are_of_their_size_and_the_same_in_each_run() -> None:
    first, second = itertools.islice(random_payloads(1_000), 2)
    assert len(first) == len(second) == 1_000
    assert first != second
    assert first.isalpha()
    assert first.isupper()
    assert next(random_payloads(1_000)) == first
    assert list(itertools.islice(numbers(), 3)) == [b"0", b"1", b"2"]
    assert set(itertools.islice(file_payloads([b"a", b"b"]), 100)) == {b"a", b"b"}


def test_payloads_of_a_file_are_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_bytes(b"a\nb\xff\n\nc\n")
    assert read_payloads(file, "\\n") == [b"a", b"b\xff", b"", b"c"]
    assert read_payloads(file, "b\n") == [b"a\nb\xff\n\nc\n"]
    with pytest.raises(ValueError, match="empty"):
        read_payloads(file, "")
    file.write_bytes(b"")
    with pytest.raises(ValueError, match="no payloads"):
        read_payloads(file, "\\n")


def test_what_was_consumed_is_a_line_as_kafkas_tool_has_it() -> None:
    stretch = Stretch(1_767_250_800_000, 1_767_250_802_000, 2 * 1_048_576, 500, 1_000)
    rates = ["1000", "1000", "2.0000", "500.0000"]
    assert stretch.line().split(", ")[2:] == ["2.0000", "1.0000", "500", "250.0000", *rates]
    shown = stretch.interval_line(4 * 1_048_576, 900).split(", ")[1:]
    assert shown == ["0", "4.0000", "1.0000", "900", "250.0000", *rates]
    document("perf-consume", json.dumps([stretch.row()]))
    assert Stretch(5, 5, 0, 0, 0).row()["n_msg_per_sec"] == 0.0


@pytest.mark.usefixtures("utc")
def test_programs_get_documents_that_stay_as_they_are() -> None:
    latencies = Latencies(2, now_ms=0)
    latencies.record(5.0, 100)
    latencies.record(7.5, 100)
    assert_golden("perf-produce", json.dumps([latencies.total(1_000).row()], indent=2) + "\n")
    assert_golden("perf-e2e", json.dumps([figures([1.5, 0.25, 0.5])], indent=2) + "\n")
    stretch = Stretch(1_767_250_800_000, 1_767_250_802_000, 2 * 1_048_576, 500, 1_000)
    assert_golden("perf-consume", json.dumps([stretch.row()], indent=2) + "\n")
