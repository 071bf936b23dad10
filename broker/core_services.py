"""The parts of a broker that its coordinators build on: all that handlers are given, but the coordinators."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kavka.broker.requests.turns import Turns

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataCache
    from kavka.broker.metrics.registry import Metrics
    from kavka.broker.partitions.fetch_sessions import FetchSessions
    from kavka.broker.partitions.producer_ids import ProducerIds
    from kavka.broker.partitions.replica_manager import ReplicaManager
    from kavka.broker.quotas.quotas import Quotas
    from kavka.broker.security.acl import Authorizer
    from kavka.broker.settings.dynamic_config import DynamicConfig
    from kavka.broker.waiting.purgatory import Purgatory
    from kavka.cluster.controller import Controller
    from kavka.cluster.features import FinalizedFeatures
    from kavka.cluster.ports import ElectedController
    from kavka.cluster.registry.base import Registry
    from kavka.storage.cleaner.log_cleaner import LogCleaner
    from kavka.storage.log_manager import LogManager


class CoreServices:
    """Set before the first request, never changed after. But any thread may replace `generation` and `quotas`."""

    __slots__ = (
        "authorizer",
        "broker_id",
        "cleaner",
        "cluster_id",
        "config",
        "controller",
        "elected_controller",
        "features",
        "fetch_sessions",
        "generation",
        "logs",
        "metadata",
        "metrics",
        "now_ms",
        "producer_ids",
        "purgatory",
        "quotas",
        "registry",
        "replicas",
        "turns",
    )

    authorizer: "Authorizer | None"
    """None: everybody may do everything."""
    broker_id: int
    cleaner: "LogCleaner"
    cluster_id: str
    config: "DynamicConfig"
    controller: "Controller"
    """This broker's candidate: it acts only while it is elected."""
    elected_controller: "ElectedController"
    """The one that is, on whichever broker."""
    features: "FinalizedFeatures"
    fetch_sessions: "FetchSessions"
    generation: object
    """Stands for the rights and limits that count now. Who remembers what was decided by them keeps the generation that
    was read before that, and compares by identity: another one says that it has to be decided again."""
    logs: "LogManager"
    metadata: "MetadataCache"
    metrics: "Metrics"
    now_ms: Callable[[], int]
    producer_ids: "ProducerIds"
    purgatory: "Purgatory"
    quotas: "Quotas | None"
    """None: nobody has a quota. Replaced as `generation` is, by whoever hears of them."""
    registry: "Registry"
    replicas: "ReplicaManager"
    turns: Turns
    """Those of the threads that run requests."""

    def __init__(self) -> None:
        self.authorizer = None
        self.generation = object()
        self.quotas = None
        self.turns = Turns()

    def changed(self) -> None:
        """ACLs, quotas or the partitions that there are have changed: nothing holds that was decided before.

        Called once the new ones are what everybody reads, and before anybody is told that they count. Any thread.
        """
        self.generation = object()
