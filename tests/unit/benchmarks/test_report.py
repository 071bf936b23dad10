"""The table's arithmetic: medians, ratios, and what counts as a goal met."""

from pathlib import Path

import pytest

from benchmarks.contestants import ApacheKafka, Contestant, Kavka
from benchmarks.librdkafka import LoadFailedError, percentiles_ms
from benchmarks.report import TABLE_HEADINGS, Report, Result, table_lines, table_row
from benchmarks.row import CPU, RATE, START, Goal, Metric, Row, Scale, UnavailableError
from benchmarks.run import OWN_ROWS, SHARED_ROWS, TABLE, run_row


class FakeRow(Row):
    """Hands out prepared rates, and remembers who was asked."""

    name = "fake"
    title = "a fake load"
    goals = (Goal(RATE, 1.5), Goal(CPU, 0.8))
    warms = False

    def __init__(self, rates: dict[str, list[float]]) -> None:
        self.rates = {name: list(values) for name, values in rates.items()}
        self.asked: list[str] = []

    def run(self, contestant: Contestant, scale: Scale) -> dict[Metric, float]:
        self.asked.append(contestant.name)
        if not self.rates[contestant.name]:
            raise UnavailableError("has no groups")
        return {RATE: self.rates[contestant.name].pop(0), CPU: 1.0}


@pytest.fixture
def contestants(tmp_path: Path) -> list[Contestant]:
    return [Kavka(tmp_path), ApacheKafka(tmp_path)]


@pytest.mark.parametrize(
    ("goal", "kavka", "kafka", "expected"),
    [
        (Goal(RATE, 1.5), 150.0, 100.0, True),
        (Goal(RATE, 1.5), 149.0, 100.0, False),
        (Goal(CPU, 0.8), 0.8, 1.0, True),
        (Goal(CPU, 0.8), 0.81, 1.0, False),
        (Goal(START, 0.25, own=0.7), 0.6, 4.0, True),
        (Goal(START, 0.25, own=0.7), 0.8, 4.0, False),
        (Goal(START, 0.25, own=0.7), 0.6, 2.0, False),
        (Goal(RATE, 1.0), 100.0, None, None),
    ],
)
def test_a_goal_bounds_the_ratio_on_the_metrics_good_side(
    goal: Goal, kavka: float, kafka: float | None, expected: bool | None
) -> None:
    assert goal.is_met(kavka, kafka) is expected


def test_rounds_alternate_who_goes_first_and_medians_are_compared(contestants: list[Contestant]) -> None:
    row = FakeRow({"kavka": [10.0, 300.0, 20.0], "kafka": [10.0, 10.0, 10.0]})

    result = run_row(row, contestants, Scale(1.0, 0.0, rounds=3))

    assert row.asked == ["kavka", "kafka", "kafka", "kavka", "kavka", "kafka"]
    rate, cpu = table_lines(result)
    assert rate[2:] == ("20 (10-300)", "10 (10-10)", "2.00x", ">= 1.5x", "met")
    assert cpu[-1] == "MISSED"


def test_a_row_of_the_table_says_all_of_it_in_one_line(contestants: list[Contestant]) -> None:
    class LatencyRow(FakeRow):
        def run(self, contestant: Contestant, scale: Scale) -> dict[Metric, float]:
            return {**super().run(contestant, scale), START: 0.5}

    result = run_row(LatencyRow({"kavka": [10.0, 30.0], "kafka": [10.0, 10.0]}), contestants, Scale(1.0, 0.0, rounds=2))

    row = table_row(result)
    assert len(row) == len(TABLE_HEADINGS)
    assert row[:5] == ("a fake load", "rate, messages/s", "20 (10-30)", "10 (10-10)", "2.00x")
    assert row[5:8] == ("1.00 (1.00-1.00)", "1.00 (1.00-1.00)", "1.00x")
    assert row[8:] == ("start to first answer, s 0.500 / 0.500", "MISSED: broker's CPU, s <= 0.8x")


def test_a_row_of_the_table_without_numbers_has_its_name() -> None:
    row = table_row(Result(FakeRow({})))

    assert len(row) == len(TABLE_HEADINGS)
    assert row[0] == "a fake load"
    assert not any("met" in cell for cell in row)


def test_a_goal_against_who_failed_counts_as_neither_met_nor_missed(contestants: list[Contestant]) -> None:
    result = run_row(FakeRow({"kavka": [10.0], "kafka": []}), contestants, Scale(1.0, 0.0, rounds=1))

    assert table_row(result)[-1] == "not known: rate >= 1.5x, broker's CPU <= 0.8x"


def test_the_tables_rows_exist() -> None:
    assert set(TABLE) <= {row.name for row in (*SHARED_ROWS, *OWN_ROWS)}


def test_who_cannot_do_a_row_is_named_with_the_reason_and_not_asked_again(
    contestants: list[Contestant], capsys: pytest.CaptureFixture[str]
) -> None:
    row = FakeRow({"kavka": [], "kafka": [10.0, 10.0]})
    report = Report("make bench", [])

    report.add(run_row(row, contestants, Scale(1.0, 0.0, rounds=2)), 1.0)

    assert row.asked.count("kavka") == 1
    assert report.notes == ["fake, kavka: not available: has no groups"]
    assert not report.has_failures
    assert "has no groups" in capsys.readouterr().out


def test_a_failed_load_is_a_failure_and_no_number(contestants: list[Contestant]) -> None:
    class FailingRow(FakeRow):
        def run(self, contestant: Contestant, scale: Scale) -> dict[Metric, float]:
            raise LoadFailedError("3 of 10 messages were delivered")

    report = Report("make bench", [])
    result = run_row(FailingRow({}), contestants, Scale(1.0, 0.0, rounds=2))
    report.add(result, 1.0)

    assert report.has_failures
    assert table_lines(result) == []


def test_percentiles_leave_out_the_first_messages(tmp_path: Path) -> None:
    latencies = tmp_path / "latencies"
    latencies.write_text("900000\n" * 5 + "".join(f"{number}000\n" for number in range(100)))
    assert percentiles_ms(latencies, (0.5, 0.99), skip=5) == [50.0, 99.0]
