"""The coordinators' own topics: how they are set up, and their creation when they are first needed."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cluster.controller.requests import NewTopic, TopicResult
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.config.broker_config import BrokerConfig

log = logging.getLogger(__name__)


class InternalTopic(NamedTuple):
    """A coordinator's topic, as the settings would have it created."""

    name: str
    partition_count: "Callable[[BrokerConfig], int]"
    replication_factor: "Callable[[BrokerConfig], int]"
    configs: "Callable[[BrokerConfig], Mapping[str, str]]"


GROUP_METADATA: Final = InternalTopic(
    GROUP_METADATA_TOPIC,
    lambda config: config.offsets_topic_num_partitions,
    lambda config: config.offsets_topic_replication_factor,
    lambda config: {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    },
)
TRANSACTION_STATE: Final = InternalTopic(
    TRANSACTION_STATE_TOPIC,
    lambda config: config.transaction_state_log_num_partitions,
    lambda config: config.transaction_state_log_replication_factor,
    lambda config: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(config.transaction_state_log_min_isr),
        "segment.bytes": str(config.transaction_state_log_segment_bytes),
        "unclean.leader.election.enable": "false",
    },
)


BY_NAME: Final = {topic.name: topic for topic in (GROUP_METADATA, TRANSACTION_STATE)}


def new_topic(topic: InternalTopic, services: "CoreServices") -> NewTopic:
    """The topic as it is to be created now.

    A broker that stands alone holds the one replica that there can be. A cluster has as many as are configured, or no
    topic: who began with fewer while its brokers started would lose them with the first disk.
    """
    config = services.config.current
    factor = topic.replication_factor(config) if config.zookeeper_connect else 1
    return NewTopic(topic.name, topic.partition_count(config), factor, configs=topic.configs(config))


class TopicCreation:
    """Creates one internal topic, once, whoever needs it first.

    Threads: any. `_lock` guards `_running`.
    """

    __slots__ = ("_lock", "_running", "_services", "topic")

    def __init__(self, topic: InternalTopic, services: "CoreServices") -> None:
        self.topic: Final = topic
        self._services = services
        self._lock = threading.Lock()
        self._running: Promise[list[TopicResult]] | None = None

    @property
    def exists(self) -> bool:
        """Whether this broker knows the topic."""
        return self.topic.name in self._services.metadata.current.topics

    def start(self) -> Promise[list[TopicResult]]:
        """Have the controller create it, unless it is about it already. Ask only while it does not exist."""
        with self._lock:
            running = self._running
            if running is not None and not running.done:
                return running
            running = self._running = self._services.elected_controller.create_topics(
                [new_topic(self.topic, self._services)]
            )
        running.watch(self._created)
        return running

    def _created(self, results: list[TopicResult] | None, failure: BaseException | None) -> None:
        error = results[0].error if results else failure
        if error is None:
            log.info("created topic=%s", self.topic.name)
        elif getattr(error, "code", None) is not ErrorCode.TOPIC_ALREADY_EXISTS:
            log.warning("could not create topic=%s error=%r", self.topic.name, str(error))
