"""The table: medians, ratios and goals, on the terminal as rows finish and in benchmarks/RESULTS.md."""

import datetime
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contestants import Contestant
from benchmarks.row import CPU, Goal, Measurement, Metric, Row, UnavailableError
from kavka import __version__

RESULTS = Path(__file__).with_name("RESULTS.md")
KAFKA = "Kafka 4.3.1"
KAFKA_IN_FULL = "Apache Kafka 4.3.1, heap 1 GiB"
HEADINGS = ("row", "measured", "Kavka", "", "ratio", "goal", "")
TABLE_HEADINGS = (
    "load",
    "measured",
    "Kavka",
    "",
    "ratio",
    "Kavka's CPU, s",
    "Kafka's CPU, s",
    "ratio",
    "besides, Kavka / Kafka",
    "goals",
)


class Result:
    """The rounds of one row. `failures` says, by contestant, what went wrong."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.rounds: dict[str, list[Measurement]] = {}
        self.failures: dict[str, tuple[type[Exception], str]] = {}

    def record(self, contestant: Contestant, measurement: Measurement) -> None:
        self.rounds.setdefault(contestant.name, []).append(measurement)

    def values(self, contestant_name: str, metric: Metric) -> list[float]:
        return [measurement[metric] for measurement in self.rounds.get(contestant_name, []) if metric in measurement]

    def metrics(self) -> list[Metric]:
        """Those measured on either side, those with goals too, in the order of the measurement."""
        found: dict[Metric, None] = {}
        for rounds in self.rounds.values():
            for measurement in rounds:
                found.update(dict.fromkeys(measurement))
        return list(found)


class Report:
    """Collects results; prints each as it comes."""

    def __init__(
        self, program: str, arguments: Sequence[str], *, kafka: str = KAFKA, kafka_in_full: str = KAFKA_IN_FULL
    ) -> None:
        """`kafka`: what Kavka is compared with, for a heading and for the description of the machine."""
        self._kafka = kafka
        self._kafka_in_full = kafka_in_full
        self.command = " ".join([program, *arguments])
        self.started = datetime.datetime.now(datetime.UTC)
        self.load_average = os.getloadavg()[0]
        self.rows: list[tuple[str, ...]] = []
        self.notes: list[str] = []
        self.has_failures = False
        self._is_headed = False

    def add(self, result: Result, seconds: float) -> None:
        lines = table_lines(result)
        self.rows.append(table_row(result))
        for name, (kind, reason) in result.failures.items():
            self.has_failures = self.has_failures or not issubclass(kind, UnavailableError)
            word = "not available" if issubclass(kind, UnavailableError) else f"failed ({kind.__name__})"
            self.notes.append(f"{result.row.name}, {name}: {word}: {reason.strip()[:600]}")
        if not self._is_headed:
            print(_terminal_line(self._headed(HEADINGS)))
            self._is_headed = True
        for line in lines:
            print(_terminal_line(line))
        for note in self.notes[len(self.notes) - len(result.failures) :]:
            print(f"    ! {note}")
        print(f"    ({seconds:.0f} s)", flush=True)

    def write(self, path: Path = RESULTS) -> None:
        path.write_text(self.markdown())

    def _headed(self, headings: tuple[str, ...]) -> tuple[str, ...]:
        """Kafka's column stands behind Kavka's."""
        place = headings.index("Kavka") + 1
        return (*headings[:place], self._kafka, *headings[place + 1 :])

    def markdown(self) -> str:
        took = datetime.datetime.now(datetime.UTC) - self.started
        text = [
            f"# Results of the last `{self.command.partition(' --')[0]}`",
            "",
            f"`{self.command}`, {self.started:%Y-%m-%d %H:%M} UTC, {took.seconds // 60} min, commit {_commit()}",
            "",
            *(f"- {line}" for line in machine(self._kafka_in_full)),
            f"- load average before the run: {self.load_average:.2f}",
            "",
            "Medians; the rounds' least and most in parentheses. Ratios are Kavka's value by Kafka's. Earlier runs,",
            "and rows that are not shown here: [HISTORY.md](HISTORY.md); the pipeline's: [PIPELINE.md](PIPELINE.md).",
            "",
            "| " + " | ".join(self._headed(TABLE_HEADINGS)) + " |",
            "|" + "---|" * len(TABLE_HEADINGS),
            *("| " + " | ".join(row) + " |" for row in self.rows),
            "",
        ]
        if self.notes:
            text += ["Not measured:", "", *(f"- {' '.join(note.split())}" for note in self.notes), ""]
        return "\n".join(text)


def table_lines(result: Result) -> list[tuple[str, ...]]:
    goals: Mapping[Metric, Goal] = {goal.metric: goal for goal in result.row.goals}
    lines: list[tuple[str, ...]] = []
    for metric in result.metrics():
        kavka, kafka = result.values("kavka", metric), result.values("kafka", metric)
        goal = goals.get(metric)
        lines.append(
            (
                result.row.title,
                metric.title,
                _spread(kavka, metric),
                _spread(kafka, metric),
                _ratio(kavka, kafka),
                goal.text() if goal else "",
                _verdict(goal, kavka, kafka),
            )
        )
    return lines


def table_row(result: Result) -> tuple[str, ...]:
    """One line for a whole row: what it is about, the broker's CPU seconds for it, and the rest in few words."""
    metrics = result.metrics()
    main = next((metric for metric in metrics if metric is not CPU), None)
    cells = [result.row.title, main.title if main else "-"]
    for metric in (main, CPU):
        kavka = result.values("kavka", metric) if metric else []
        kafka = result.values("kafka", metric) if metric else []
        spread = [_spread(values, metric) if metric else "-" for values in (kavka, kafka)]
        cells += [*spread, _ratio(kavka, kafka)]
    besides = [_beside(result, metric) for metric in metrics if metric not in (main, CPU)]
    return (*cells, "; ".join(besides), _goals(result) if metrics else "")


def machine(kafka: str = KAFKA_IN_FULL) -> list[str]:
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory_kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[:1]
    return [
        f"{os.cpu_count()} x {model}, {memory_kib >> 20} GiB, {platform.system()} {platform.release()}",
        f"Kavka {__version__}, Python {platform.python_version()}; {kafka}, {' '.join(java)}",
    ]


def _verdict(goal: Goal | None, kavka: Sequence[float], kafka: Sequence[float]) -> str:
    if goal is None or not kavka:
        return ""
    is_met = goal.is_met(statistics.median(kavka), statistics.median(kafka) if kafka else None)
    return "" if is_met is None else ("met" if is_met else "MISSED")


def _goals(result: Result) -> str:
    """What became of a row's goals: those that were missed, or else those that were met."""
    by_verdict: dict[str, list[Goal]] = {"MISSED": [], "met": [], "": []}
    for goal in result.row.goals:
        kavka, kafka = result.values("kavka", goal.metric), result.values("kafka", goal.metric)
        by_verdict[_verdict(goal, kavka, kafka)].append(goal)
    missed, met, unknown = by_verdict.values()
    if missed:
        return "; ".join(f"MISSED: {goal.metric.title} {goal.text()}" for goal in missed)
    parts = [
        f"{name}: " + ", ".join(f"{_short(goal.metric)} {goal.text()}" for goal in goals)
        for name, goals in (("met", met), ("not known", unknown))
        if goals
    ]
    return "; ".join(parts)


def _beside(result: Result, metric: Metric) -> str:
    medians = [
        f"{statistics.median(values):,.{metric.digits}f}" if values else "-"
        for values in (result.values("kavka", metric), result.values("kafka", metric))
    ]
    return f"{metric.title} {' / '.join(medians)}"


def _short(metric: Metric) -> str:
    """Without the unit: a ratio has none."""
    return metric.title.partition(", ")[0]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _spread(values: Sequence[float], metric: Metric) -> str:
    if not values:
        return "-"
    median = f"{statistics.median(values):,.{metric.digits}f}"
    if len(values) == 1:
        return median
    return f"{median} ({min(values):,.{metric.digits}f}-{max(values):,.{metric.digits}f})"


def _ratio(kavka: Sequence[float], kafka: Sequence[float]) -> str:
    if not kavka or not kafka or not statistics.median(kafka):
        return ""
    return f"{statistics.median(kavka) / statistics.median(kafka):.2f}x"


def _terminal_line(cells: Sequence[str]) -> str:
    widths = (46, 34, 32, 32, 7, 18, 6)
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
