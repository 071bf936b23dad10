"""Groups and their offsets, as far as this broker coordinates them. Names as in docs/metrics.md.

Read off the shards without their locks, group by group: what a scrape shows of one group may be a moment older than
what it shows of the next.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.coordinator.group.group import Group
    from kavka.coordinator.group.shard import GroupShard

Reading = tuple[Labels, float]
Place = tuple[str, str, int, int]
"""group, topic, partition, and a number about that: an offset or a lag"""

CLASSIC_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
TYPES: Final = ("classic", "consumer")


def register_group_gauges(metrics: Metrics, services: "Services") -> None:
    """Register the gauges of groups and offsets. Called once; the coordinator need not be there yet."""
    groups = _Groups(services)
    for name, text, read in (
        ("numgroups", "Classic groups.", lambda: groups.count("classic")),
        ("numoffsets", "Committed offsets.", lambda: sum(shard.offsets.count for shard in groups.shards())),
    ):
        metrics.gauge(f"kafka_coordinator_group_groupmetadatamanager_{name}", text, read)
    for state in CLASSIC_STATES:
        metrics.gauge(
            f"kafka_coordinator_group_groupmetadatamanager_numgroups{state.lower()}",
            f"Classic groups that are {state}.",
            groups.counter("classic", state),
        )
    metrics.gauge(
        "kafka_server_group_coordinator_metrics_group_count",
        "Groups by protocol.",
        lambda: (({"protocol": kind}, float(groups.count(kind))) for kind in TYPES),
    )
    metrics.gauge(
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        "Groups of the consumer protocol by state.",
        lambda: (({"state": state.lower()}, float(groups.count("consumer", state))) for state in CONSUMER_STATES),
    )
    for name, text, readings in (
        ("members", "Members of the group.", groups.members),
        ("current_offset", "The offset that the group has committed.", groups.current_offsets),
        ("lag", "Records between that offset and the high watermark, of partitions led from here.", groups.lags),
        ("lag_sum", "The lag of all of a topic's partitions.", groups.lag_sums),
    ):
        metrics.gauge(f"kafka_consumergroup_{name}", text, readings)


class _Groups:
    """What the shards of this broker hold. Any thread; changes nothing."""

    def __init__(self, services: "Services") -> None:
        self._services = services

    def shards(self) -> "list[GroupShard]":
        runtime = self._services.groups.existing_runtime
        return [] if runtime is None else runtime.shards()

    def all(self) -> "Iterator[tuple[GroupShard, Group]]":
        for shard in self.shards():
            for group in shard.groups.all():
                yield shard, group

    def count(self, kind: str, state: str | None = None) -> int:
        return sum(group.type.value == kind and (state is None or group.state_name == state) for _, group in self.all())

    def counter(self, kind: str, state: str) -> Callable[[], int]:
        return lambda: self.count(kind, state)

    def members(self) -> Iterator[Reading]:
        return (({"consumergroup": group.group_id}, float(group.member_count)) for _, group in self.all())

    def current_offsets(self) -> Iterator[Reading]:
        return map(_reading, self._offsets())

    def lags(self) -> Iterator[Reading]:
        return map(_reading, self._lags())

    def lag_sums(self) -> Iterator[Reading]:
        sums: Counter[tuple[str, str]] = Counter()
        for group_id, topic, _, lag in self._lags():
            sums[group_id, topic] += lag
        return (({"consumergroup": group_id, "topic": topic}, float(lag)) for (group_id, topic), lag in sums.items())

    def _offsets(self) -> Iterator[Place]:
        for shard, group in self.all():
            for topic, partition, offset in shard.offsets.snapshot(group.group_id):
                yield group.group_id, topic, partition, offset

    def _lags(self) -> Iterator[Place]:
        partitions = self._services.replicas.partitions
        for group_id, topic, partition, offset in self._offsets():
            hosted = partitions.get((topic, partition))
            if hosted is not None and hosted.role.is_leader and hosted.log is not None:
                yield group_id, topic, partition, max(hosted.log.high_watermark - offset, 0)


def _reading(place: Place) -> Reading:
    group_id, topic, partition, number = place
    return {"consumergroup": group_id, "topic": topic, "partition": str(partition)}, float(number)
