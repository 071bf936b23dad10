"""Both coordinators of a broker, and what they hear of: leaderships, topics, the end."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.clock import SYSTEM_CLOCK, Clock
from kavka.broker.coordination.groups import GroupCoordination
from kavka.broker.coordination.topics import KnownTopics
from kavka.broker.coordination.transactions import TransactionCoordination
from kavka.broker.coordination.workers import Workers

if TYPE_CHECKING:
    from kavka.broker.coordination.coordination import AnyCoordination
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.services import Services
    from kavka.broker.waiting.timer import Timer
    from kavka.coordinator.ports import Surroundings


class Coordinators:
    """Made before the first partition is hosted; sets `services.groups` and `services.transactions`.

    Threads: any.
    """

    def __init__(
        self,
        services: "Services",
        timer: "Timer",
        workers: Workers,
        thread_died: Callable[[BaseException], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._services = services
        self._timer = timer
        self._workers = workers
        self._thread_died = thread_died
        self._clock = clock
        self._topics = KnownTopics(services.metadata)
        services.groups = GroupCoordination(services, self._surroundings, workers)
        services.transactions = TransactionCoordination(services, services.groups, self._surroundings, workers)
        self._by_topic: Final[dict[str, AnyCoordination]] = {
            coordination.topic.name: coordination for coordination in (services.groups, services.transactions)
        }

    def leadership_changed(self, partition: "Partition", is_leader: bool) -> None:
        """This broker leads a partition, or leads it no more; see `ReplicaManager`. Never waits."""
        coordination = self._by_topic.get(partition.topic)
        if coordination is not None:
            coordination.leadership_changed(partition, is_leader)

    def metadata_changed(self, old: "MetadataSnapshot", new: "MetadataSnapshot") -> None:
        """The cluster has changed; see `MetadataCache.on_change`. Never waits."""
        if self._topics.changed(old, new):
            for coordination in self._by_topic.values():
                coordination.topics_changed()

    def stop(self) -> None:
        """Answer what waits at them, and end. They may be asked on: everything is refused as NOT_COORDINATOR."""
        for coordination in self._by_topic.values():
            coordination.stop()

    def _surroundings(self) -> "Surroundings":
        from kavka.coordinator.ports import Surroundings

        services = self._services
        monotonic_ns = self._clock.monotonic_ns
        return Surroundings(
            now_ms=services.now_ms,
            monotonic_ms=lambda: monotonic_ns() // 1_000_000,
            config=lambda: services.config.current,
            group_config=services.config.group_config,
            topics=self._topics,
            count_event=services.metrics.count,
            delays=self._timer,
            execute=self._workers.operations,
            thread_died=self._thread_died,
        )
