"""What a row of the table is: a load, what is measured under it, and the goal it is held to."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from benchmarks.contestants import Contestant
from tests.support.server import RunningServer


class Better(Enum):
    MORE = "more"
    LESS = "less"


@dataclass(frozen=True)
class Metric:
    """One number of a measurement; `digits` after the point in the table."""

    key: str
    title: str
    better: Better
    digits: int = 2


RATE = Metric("rate", "rate, messages/s", Better.MORE, 0)
CPU = Metric("cpu_s", "broker's CPU, s", Better.LESS)
CPU_PER_MILLION = Metric("cpu_per_million_s", "broker's CPU per million messages, s", Better.LESS)
P50 = Metric("p50_ms", "p50 latency, ms", Better.LESS, 3)
P99 = Metric("p99_ms", "p99 latency, ms", Better.LESS, 3)
AVERAGE = Metric("average_ms", "average latency, ms", Better.LESS, 3)
START = Metric("start_s", "start to first answer, s", Better.LESS, 3)
RESTART = Metric("restart_s", "start until all partitions serve, s", Better.LESS, 3)
IDLE_MEMORY = Metric("idle_mib", "memory idle, MiB", Better.LESS, 1)
PEAK_MEMORY = Metric("peak_mib", "peak memory after the load, MiB", Better.LESS, 1)


@dataclass(frozen=True)
class Goal:
    """A bound on Kavka's ratio to Apache Kafka, or on Kavka's own value; the metric says which side is good."""

    metric: Metric
    ratio: float | None = None
    own: float | None = None

    def is_met(self, kavka: float, kafka: float | None) -> bool | None:
        """None when there is nothing to compare with."""
        results = []
        if self.own is not None:
            results.append(_holds(self.metric, kavka, self.own))
        if self.ratio is not None:
            if not kafka:
                return None
            results.append(_holds(self.metric, kavka / kafka, self.ratio))
        return all(results)

    def text(self) -> str:
        sign = ">=" if self.metric.better is Better.MORE else "<="
        parts = [f"{sign} {self.ratio:g}x"] if self.ratio is not None else []
        parts += [f"{sign} {self.own:g}"] if self.own is not None else []
        return " and ".join(parts)


@dataclass(frozen=True)
class Scale:
    """How much to do: everything, or a tenth of it with `--quick`."""

    share: float
    warm_seconds: float
    rounds: int

    def count(self, full: int) -> int:
        return max(1, round(full * self.share))


Measurement = Mapping[Metric, float]
"""One run of a row against one broker."""


class UnavailableError(Exception):
    """This broker cannot do the row (yet); the table says why."""


class Row:
    """A row runs against each contestant in turn, as many rounds as asked for, on the contestant's shared broker.

    `prepare` and `clean` surround all rounds of one contestant: topics to read, a broker of the row's own. `run` is one
    measured round; its work must not depend on the broker's speed where CPU seconds are compared.
    """

    name: str
    title: str
    goals: tuple[Goal, ...] = ()
    warms = True
    """Whether the row is run, unmeasured, for a minute first: the JVM compiles what it runs often."""

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        """Once, before warm-up and rounds."""

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        raise NotImplementedError

    def clean(self, contestant: Contestant) -> None:
        """Once, after the rounds, also when `prepare` or a round failed."""


class OwnServerRow(Row):
    """A row with a broker of its own, that stays up over its rounds: it must not weigh on the other rows."""

    def __init__(self) -> None:
        self._servers: dict[str, RunningServer] = {}

    def settings(self, contestant: Contestant) -> Mapping[str, str]:
        return {}

    def server(self, contestant: Contestant) -> RunningServer:
        return self._servers[contestant.name]

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        server = self._servers[contestant.name] = contestant.fresh(self.settings(contestant))
        server.start()

    def clean(self, contestant: Contestant) -> None:
        server = self._servers.pop(contestant.name, None)
        if server is not None:
            contestant.remove(server)


def _holds(metric: Metric, value: float, bound: float) -> bool:
    return value >= bound if metric.better is Better.MORE else value <= bound
