"""Where the shards of both coordinators stand, and how long they took to load. Names as in docs/metrics.md."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.broker.coordination.coordination import AnyCoordination
    from kavka.coordinator.runtime.runtime import LoadTimes

STATES: Final = ("loading", "active", "failed")


def register_coordination_gauges(metrics: Metrics, name: str, coordination: "AnyCoordination") -> None:
    """Register the gauges of one coordinator, called `name` there: group or transaction. It need not be there yet."""

    def partitions() -> Iterator[tuple[Labels, float]]:
        runtime = coordination.existing_runtime
        states = [] if runtime is None else runtime.states().values()
        counts = Counter(state.value for state in states)
        return (({"state": state}, float(counts[state])) for state in STATES)

    def load_time(read: "Callable[[LoadTimes], float]") -> Callable[[], float]:
        def value() -> float:
            runtime = coordination.existing_runtime
            return 0.0 if runtime is None else read(runtime.load_times)

        return value

    prefix = f"kafka_server_{name}_coordinator_metrics"
    metrics.gauge(f"{prefix}_num_partitions", "Partitions of its topic that this broker coordinates.", partitions)
    for ending, text, read in (
        ("max", "The longest load of a partition in ms.", lambda times: times.longest_ms),
        ("avg", "The mean load of a partition in ms.", lambda times: times.total_ms / max(times.count, 1)),
    ):
        metrics.gauge(f"{prefix}_partition_load_time_{ending}", text, load_time(read))
