"""A coordinator in its broker: which shards it has by what the controller says, and how requests reach them.

The modules of the state machines are imported when the first shard is loaded or the topic is first asked for: a broker
without groups and transactions starts without them.
"""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from kavka.broker.coordination.coordinated_log import CoordinatedLog
from kavka.broker.coordination.internal_topics import InternalTopic, TopicCreation
from kavka.broker.coordination.workers import Workers
from kavka.cluster.promise import Promise
from kavka.coordinator.partitioning import partition_for

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.broker.metadata.metadata_cache import TopicMetadata
    from kavka.broker.partitions.partition import Partition
    from kavka.coordinator.ports import Shard, Surroundings
    from kavka.coordinator.runtime.result import Result
    from kavka.coordinator.runtime.runtime import CoordinatorRuntime
    from kavka.protocol.errors import BrokerError

S = TypeVar("S", bound="Shard")
T = TypeVar("T")

log = logging.getLogger(__name__)


class Coordination(Generic[S]):
    """One coordinator. `make_runtime(surroundings)` is called once, when it is first needed.

    Threads: any. `_lock` guards the making of the runtime, `_logs` (the log of each partition that was ever led) and
    changes of `_counted`: the topic's id, and how many partitions it had when this broker first knew it.
    """

    def __init__(
        self,
        topic: InternalTopic,
        services: "CoreServices",
        surroundings: "Callable[[], Surroundings]",
        workers: Workers,
        make_runtime: "Callable[[Surroundings], CoordinatorRuntime[S]]",
    ) -> None:
        self.topic: Final = topic
        self.creation: Final = TopicCreation(topic, services)
        self.workers: Final = workers
        self._services = services
        self._surroundings = surroundings
        self._make_runtime = make_runtime
        self._lock = threading.Lock()
        self._logs: dict[int, CoordinatedLog] = {}
        self._counted: _Counted = _Counted(b"", 0)
        self._grown_to = 0
        self._runtime: CoordinatorRuntime[S] | None = None
        self._stopped = False

    @property
    def runtime(self) -> "CoordinatorRuntime[S]":
        """The shards."""
        runtime = self._runtime
        if runtime is None:
            with self._lock:
                runtime = self._runtime
                if runtime is None:
                    runtime = self._runtime = self._make_runtime(self._surroundings())
                    if self._stopped:
                        runtime.stop()
        return runtime

    @property
    def existing_runtime(self) -> "CoordinatorRuntime[S] | None":
        """The shards, if there ever were some."""
        return self._runtime

    def run(self, key: str, operation: "Callable[[S], Result]", refused: "Callable[[BrokerError], object]") -> None:
        """Carry out an operation on the shard of that group or transactional id; see `CoordinatorRuntime.run`."""
        self.runtime.run(self.partition_of(key), operation, refused)

    def ask(self, key: str, operation: "Callable[[S], T]") -> "T | None":
        """What that shard says at once; see `CoordinatorRuntime.ask`."""
        return self.runtime.ask(self.partition_of(key), operation)

    def run_all(self, operation: "Callable[[S], Result]", refused: "Callable[[BrokerError], object]") -> int:
        """Carry out an operation on each shard; see `CoordinatorRuntime.run_all`."""
        return self.runtime.run_all(operation, refused)

    def partition_of(self, key: str) -> int:
        """The partition of the internal topic that a group or transactional id belongs to."""
        return partition_for(key, self.partition_count())

    def partition_count(self) -> int:
        """Of the topic as this broker first knew it, or as it would be created.

        Partitions that it is given later are not used until the next start, as in Kafka: with another count nearly
        every group and transactional id would belong to another shard, which knows nothing of it.
        """
        topic = self._services.metadata.current.topics.get(self.topic.name)
        if topic is None:
            return self.topic.partition_count(self._services.config.current)
        counted = self._counted
        return counted.partitions if counted.topic_id == topic.topic_id else self._count(topic)

    def _count(self, topic: "TopicMetadata") -> int:
        with self._lock:
            if self._counted.topic_id != topic.topic_id:
                self._counted = _Counted(topic.topic_id, len(topic))
            return self._counted.partitions

    def _note_growth(self) -> None:
        """Count the topic as soon as it is known; say so when it gets partitions that are not used yet."""
        count = self.partition_count()
        topic = self._services.metadata.current.topics.get(self.topic.name)
        if topic is not None and len(topic) not in (count, self._grown_to):
            self._grown_to = len(topic)
            log.error(
                "partitions were added to an internal topic: its keys keep to the first ones until the next start,"
                " which looks for most of them elsewhere and does not find what they have"
                " topic=%s used=%d partitions=%d",
                self.topic.name,
                count,
                len(topic),
            )

    def create_topic(self) -> Promise[None]:
        """Have the topic created, unless somebody is about it; ask only while it does not exist.

        Done when the creation has come to an end, whichever, and the shards that this broker got by it are loaded: the
        first request of a group or transaction then needs no second try.
        """
        ready: Promise[None] = Promise()

        def created(*_: object) -> None:
            runtime = self._runtime
            if runtime is None:
                ready.complete(None)
            else:
                runtime.after_loads(lambda: ready.complete(None))

        self.creation.start().watch(created)
        return ready

    def leadership_changed(self, partition: "Partition", is_leader: bool) -> None:
        """The controller has spoken. Never waits; called under the locks of those who tell."""
        if not is_leader:
            runtime = self._runtime
            if runtime is not None:
                runtime.resigns(partition.index)
            return
        services = self._services
        with self._lock:
            led = self._logs.get(partition.index)
            if led is None or led.partition is not partition:
                led = self._logs[partition.index] = CoordinatedLog(
                    partition,
                    services.purgatory,
                    services.now_ms,
                    lambda: services.config.current.offsets_commit_timeout_ms,
                    self.workers.flushes,
                )
        self.runtime.leads(partition.index, partition.role.leader_epoch, led)

    def topics_changed(self) -> None:
        """Topics came, went or grew. Never waits."""
        self._note_growth()
        runtime = self._runtime
        if runtime is not None:
            runtime.topics_changed()

    def stop(self) -> None:
        """Answer what waits, and end."""
        with self._lock:
            self._stopped = True
            runtime = self._runtime
        if runtime is not None:
            runtime.stop()


class _Counted(NamedTuple):
    """How many partitions a topic had when this broker first knew it."""

    topic_id: bytes
    partitions: int


AnyCoordination = Coordination[Any]
