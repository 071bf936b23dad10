"""docs/client.md lists the metrics that there are, by group and tags as they are registered, and Kafka's that are not.

metrics-4.3.txt is what Kafka's own clients list.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka.client import Admin, Consumer, Producer, TopicPartition
from kavka.client.call import Call
from kavka.client.client_metrics import Metrics
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.counts import ClientCounts
from kavka.client.network_metrics import NetworkMetrics
from kavka.client.node import Node
from kavka.client.producer.buffer_memory import BufferMemory
from kavka.client.producer.producer_metrics import ProducerMetrics
from kavka.protocol.messages.heartbeat import HeartbeatRequest

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "client.md").read_text()
KAFKAS = [
    line.split("|") for line in (Path(__file__).parent / "metrics-4.3.txt").read_text().splitlines() if "|" in line
]
LOCAL = "localhost:1"
Place = tuple[str, str]
"""A group, and the names of the tags."""


def of_clients() -> Iterator[Metrics]:
    """Of three that have met nobody, and of what they measure once they have met a topic and a broker."""
    for client in (
        Producer(bootstrap_servers=LOCAL),
        Consumer(bootstrap_servers=LOCAL, group_id="g"),
        Admin(bootstrap_servers=LOCAL),
    ):
        with client:
            yield client.metrics
    producing = Metrics("producer", "p")
    batch: Any = SimpleNamespace(topic_partition=TopicPartition("t", 0), count=1)
    ProducerMetrics(producing, cast(BufferMemory, SimpleNamespace(exhausted=0, waited_ms=0))).failed(batch, 0)
    yield producing
    consuming = Metrics("consumer", "c")
    state: Any = SimpleNamespace(
        partition=TopicPartition("t", 0), end_offset=None, log_start_offset=None, position=SimpleNamespace(offset=0)
    )
    FetchMetrics(consuming).given(state, 1, 70)
    yield consuming
    for domain in ("producer", "consumer", "admin-client"):
        networking = Metrics(domain, "c")
        call = Call(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), print)
        NetworkMetrics(networking, ClientCounts()).answered(Node(1, "h", 1), call, 0)
        yield networking


@pytest.fixture(scope="module")
def registered() -> dict[Place, set[str]]:
    found: dict[Place, set[str]] = {}
    for metrics in of_clients():
        for metric in metrics.all():
            tags = ", ".join(sorted(name for name, _ in metric.tags))
            found.setdefault((metric.group, tags), set()).add(metric.name)
    return found


def on_the_page() -> dict[Place, set[str]]:
    table = PAGE.split("| group | tags | names |\n")[1].split("\n\n")[0]
    found: dict[Place, set[str]] = {}
    for line in table.splitlines()[1:]:
        groups, tags, names = line.strip("| ").split(" | ")
        for group in re.findall(r"`([a-z-]+)`", groups):
            place = group, ", ".join(sorted(re.findall(r"`([a-z-]+)`", tags)))
            found.setdefault(place, set()).update(re.findall(r"`([a-z-]+)`", names))
    return found


def test_the_page_lists_what_there_is(registered: dict[Place, set[str]]) -> None:
    assert on_the_page() == registered


def test_what_kafkas_clients_have_is_here_or_said_not_to_be(registered: dict[Place, set[str]]) -> None:
    here = {(group, name) for (group, _), names in registered.items() for name in names}
    paragraph = PAGE.split("Of Kafka's clients' metrics these are not here")[1].split("\n\n")[0]
    left_out = set(re.findall(r"`([a-z-]+\*?)`", paragraph))
    missing = [name for group, name in KAFKAS if (group, name) not in here]
    assert len(KAFKAS) > 200
    unexplained = [
        name
        for name in missing
        if name not in left_out and not any(each.endswith("*") and name.startswith(each[:-1]) for each in left_out)
    ]
    assert unexplained == []
