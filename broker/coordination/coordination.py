"""A coordinator in its broker: which shards it has by what the controller says, and how requests reach them.

The modules of the state machines are imported when the first shard is loaded or the topic is first asked for: a broker
without groups and transactions starts without them.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kavka.broker.coordination.internal_topics import InternalTopic, TopicCreation
from kavka.broker.coordination.partition_log import CoordinatedLog
from kavka.coordinator.partitioning import partition_for

if TYPE_CHECKING:
    from kavka.broker.partition import Partition
    from kavka.broker.services import Services
    from kavka.coordinator.ports import Shard, Surroundings
    from kavka.coordinator.runtime.result import Result
    from kavka.coordinator.runtime.runtime import CoordinatorRuntime
    from kavka.protocol.errors import BrokerError

S = TypeVar("S", bound="Shard")


class Coordination(Generic[S]):
    """One coordinator. `make_runtime(surroundings)` is called once, when it is first needed.

    Threads: any. `_lock` guards the making of the runtime, and `_logs`: the log of each partition that was ever led.
    """

    def __init__(
        self,
        topic: InternalTopic,
        services: "Services",
        surroundings: "Callable[[], Surroundings]",
        make_runtime: "Callable[[Surroundings], CoordinatorRuntime[S]]",
    ) -> None:
        self.topic: Final = topic
        self.creation: Final = TopicCreation(topic, services)
        self._services = services
        self._surroundings = surroundings
        self._make_runtime = make_runtime
        self._lock = threading.Lock()
        self._logs: dict[int, CoordinatedLog] = {}
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

    def run_all(self, operation: "Callable[[S], Result]", refused: "Callable[[BrokerError], object]") -> int:
        """Carry out an operation on each shard; see `CoordinatorRuntime.run_all`."""
        return self.runtime.run_all(operation, refused)

    def partition_of(self, key: str) -> int:
        """The partition of the internal topic that a group or transactional id belongs to."""
        return partition_for(key, self.partition_count())

    def partition_count(self) -> int:
        """Of the topic as it is, or as it would be created."""
        topic = self._services.metadata.current.topics.get(self.topic.name)
        if topic is not None and len(topic):
            return len(topic)
        return self.topic.partition_count(self._services.config.current)

    def create_topic(self) -> "Future[None]":
        """Have the topic created, unless somebody is about it; ask only while it does not exist.

        Done when the creation has come to an end, whichever, and the shards that this broker got by it are loaded: the
        first request of a group or transaction then needs no second try.
        """
        ready: Future[None] = Future()

        def created(_: object) -> None:
            runtime = self._runtime
            if runtime is None:
                ready.set_result(None)
            else:
                runtime.after_loads(lambda: ready.set_result(None))

        self.creation.start().add_done_callback(created)
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
                    self._surroundings().execute,
                )
        self.runtime.leads(partition.index, partition.leader_epoch, led)

    def topics_changed(self) -> None:
        """Topics came, went or grew. Never waits."""
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


AnyCoordination = Coordination[Any]
