"""What handlers may call. Wired by `broker/server.py`, once, by hand."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.coordination.transactions import TransactionCoordination
    from kavka.broker.dynamic_config import DynamicConfig
    from kavka.broker.fetch_sessions import FetchSessions
    from kavka.broker.metadata_cache import MetadataCache
    from kavka.broker.metrics import Metrics
    from kavka.broker.producer_ids import ProducerIds
    from kavka.broker.purgatory import Purgatory
    from kavka.broker.replica_manager import ReplicaManager
    from kavka.cluster.controller import Controller
    from kavka.cluster.features import FinalizedFeatures
    from kavka.cluster.registry.base import Registry
    from kavka.storage.cleaner.log_cleaner import LogCleaner
    from kavka.storage.log_manager import LogManager


class Services:
    """The broker's parts, as handlers see them. Set before the first request, never changed after."""

    __slots__ = (
        "broker_id",
        "cleaner",
        "cluster_id",
        "config",
        "controller",
        "features",
        "fetch_sessions",
        "groups",
        "logs",
        "metadata",
        "metrics",
        "now_ms",
        "producer_ids",
        "purgatory",
        "registry",
        "replicas",
        "transactions",
    )

    broker_id: int
    cleaner: "LogCleaner"
    cluster_id: str
    config: "DynamicConfig"
    controller: "Controller"
    features: "FinalizedFeatures"
    fetch_sessions: "FetchSessions"
    groups: "GroupCoordination"
    logs: "LogManager"
    metadata: "MetadataCache"
    metrics: "Metrics"
    now_ms: Callable[[], int]
    producer_ids: "ProducerIds"
    purgatory: "Purgatory"
    registry: "Registry"
    replicas: "ReplicaManager"
    transactions: "TransactionCoordination"
