"""What is asked of the controller, and what it answers. Plain values without behaviour.

A topic id is 16 raw bytes, a timestamp milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kavka.cluster.znodes.config import DEFAULT_ENTITY, node_name
from kavka.protocol.errors import BrokerError


class NewTopic(NamedTuple):
    """A topic to create: with counts (-1: the broker's default), or with an assignment of replicas by partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class TopicResult(NamedTuple):
    """What became of one NewTopic. With an error the rest says what would have been, as far as it is known."""

    name: str
    topic_id: bytes
    error: BrokerError | None
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class NewPartitions(NamedTuple):
    """Grow a topic to `total_count` partitions; `assignments` has, when given, one replica list per new partition."""

    name: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


class ImportedTopic(NamedTuple):
    """A topic found on disk (adoption of a Kafka directory): its name, id and partitions are kept as they are."""

    name: str
    partition_count: int
    topic_id: bytes
    leader_epoch: int
    configs: Mapping[str, str] = {}


class ElectionType(IntEnum):
    """As in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class UpgradeType(IntEnum):
    """As in UpdateFeatures; a downgrade may be the end of what newer levels have stored."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level of a feature that the cluster shall agree on; below 1, none."""

    name: str
    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class ProducerIdBlock(NamedTuple):
    """Producer ids from `first` to `last`, both included, for one broker's use."""

    first: int
    last: int


class ControllerStats(NamedTuple):
    """Counts for metrics. `unclean_elections` are those of all terms of this broker, the rest the present term's."""

    is_active: bool
    unclean_elections: int
    queued_events: int = 0
    brokers: int = 0
    topics: int = 0
    partitions: int = 0
    offline_partitions: int = 0
    deleting_topics: int = 0
    waiting_deletions: int = 0
    deleting_replicas: int = 0


class ConfigEntity(NamedTuple):
    """Whose configuration: the folder and the node below `/config`."""

    kind: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.name}"

    @staticmethod
    def topic(name: str) -> ConfigEntity:
        return ConfigEntity("topics", name)

    @staticmethod
    def group(group_id: str) -> ConfigEntity:
        return ConfigEntity("groups", node_name(group_id))

    @staticmethod
    def user(name: str) -> ConfigEntity:
        return ConfigEntity("users", node_name(name))

    @staticmethod
    def broker(broker_id: int | None) -> ConfigEntity:
        """One broker's dynamic settings, or with None the cluster-wide default (`<default>`)."""
        return ConfigEntity("brokers", DEFAULT_ENTITY if broker_id is None else str(broker_id))
