"""docs/metrics.md names every metric that a broker shows, and no other."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kavka.broker.interbroker.gauges import register_inter_broker_gauges
from kavka.broker.metrics.exposition import Exposition
from kavka.broker.metrics.gauges import register_broker_state, register_gauges
from kavka.broker.metrics.registry import Metrics
from kavka.broker.metrics.zookeeper_gauges import register_zookeeper_gauges
from kavka.broker.network.limits import arrivals_of
from kavka.broker.quotas.gauges import register_quota_gauges
from kavka.broker.quotas.quotas import Quotas
from kavka.broker.replication.gauges import register_following_gauges
from kavka.broker.security.authentication_counts import counts_of
from kavka.client.counts import ClientCounts
from kavka.cluster.controller.requests import ControllerStats
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from kavka.cluster.registry.zookeeper_session import SessionCounts
from kavka.storage.cleaner.log_cleaner import LogCleaner
from tests.support.broker_handlers import BROKER_ID, Broker
from tests.support.compaction import broker_config
from tests.support.staged_groups import StagedGroups

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def documented() -> set[str]:
    names: set[str] = set()
    for line in DOCUMENT.read_text().splitlines():
        first: str | None = None
        for name in re.findall(r"`([a-z_.]+)`", line.split("|")[1] if line.startswith("| `k") else ""):
            first = first or name
            names.add(name if not name.startswith("...") else _completed(first, name.removeprefix("...")))
    return names


def _completed(first: str, ending: str) -> str:
    """`a_b_c, ..._d`: the first name with its last part replaced (the part that `_total` belongs to)."""
    stem = first.removesuffix("_total").rpartition("_")[0]
    if first.startswith("kafka_topic_partition_"):
        stem = "kafka_topic_partition"
    return stem + ending


def test_the_document_names_what_is_shown() -> None:
    broker = Broker(visits=[BROKER_ID])
    log = broker.host("visits")
    directories = SimpleNamespace(all=[])
    broker.services.logs = SimpleNamespace(all_logs=lambda: [log], directories=directories)
    broker.services.cleaner = LogCleaner(broker.services.logs, broker_config(), now_ms=lambda: 0)
    broker.services.now_ms = lambda: 0
    broker.services.groups = StagedGroups()
    broker.services.transactions = SimpleNamespace(existing_runtime=None)
    broker.services.controller.stats = lambda: ControllerStats(True, unclean_elections=0)
    moves: Any = SimpleNamespace(max_lag=0, failed_count=0)
    broker.services.replica_moves = moves
    metrics = Metrics()
    register_gauges(metrics, broker.services, request_queue_size=lambda: 0, connection_count=lambda: 0, transports=[])
    register_broker_state(metrics, lambda: 3)
    counts_of(metrics)
    arrivals_of(metrics)
    following: Any = SimpleNamespace(max_lag=0, failed=frozenset(), fetchers=[])
    register_following_gauges(metrics, following)
    counts = SessionCounts()
    counts.answered(2.5)
    connected = cast(ZooKeeperRegistry, SimpleNamespace(session_counts=counts, session_state="CONNECTED"))
    register_zookeeper_gauges(metrics, connected)

    quotas = Quotas(broker_config(), lambda: 0, lambda: None)
    quotas.apply("clients/c", {"producer_byte_rate": "1", "controller_mutation_rate": "1"})
    quotas.apply("users/u", {"consumer_byte_rate": "1", "request_percentage": "1"})
    quotas.account("User:u", "c")
    register_quota_gauges(metrics, quotas)
    channels: Any = SimpleNamespace(queue_sizes=dict)
    inter_broker: Any = SimpleNamespace(counts=ClientCounts())
    register_inter_broker_gauges(metrics, inter_broker, channels)

    families = list(Exposition(metrics, {}).families())
    shown = {family.name + ("_total" if family.kind == "counter" else "") for family in families}

    assert shown == documented()
