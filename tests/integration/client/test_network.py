"""Metadata, coordinators and errors of real brokers, by the layers that all three clients stand on."""

from collections.abc import Iterator
from typing import Any

import pytest

from kavka.client.api_errors import InvalidGroupIdError, InvalidTopicError, error_of
from kavka.client.client_thread import ClientThread
from kavka.client.coordinators import CoordinatorKind, Coordinators
from kavka.client.node import Node
from kavka.client.opening import Opened, open_network, retry_backoff
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients import admin_settings, producer_settings
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.schema import ZERO_UUID
from tests.support.client_brokers import KAVKA
from tests.support.processes import wait_until
from tests.support.server import RunningServer

TIMEOUT_S = 90.0


class Alone:
    """A machine with coordinators only."""

    def __init__(self, opened: Opened, backoff: Any) -> None:
        self.coordinators = Coordinators(opened.network, opened.metadata, backoff)

    def work(self, now_ms: float) -> float:
        return self.coordinators.work(now_ms)

    def closing(self, _now_ms: float) -> None:
        pass

    def is_idle(self) -> bool:
        return True

    def closed(self) -> None:
        pass


class Client:
    """The layers under a client, on their thread."""

    def __init__(self, bootstrap: str, **keywords: Any) -> None:
        # The first server does not exist: the others are tried.
        settings = producer_settings(bootstrap_servers=f"127.0.0.1:1,{bootstrap}", **keywords)
        self.opened = open_network(settings, allow_auto_create=True)
        self.machine = Alone(self.opened, retry_backoff(settings))
        self.thread = ClientThread("kavka-test", self.opened.network, self.machine, metadata=self.opened.metadata)
        self.thread.start()

    @property
    def deadline_ms(self) -> float:
        return self.thread.now_ms() + TIMEOUT_S * 1_000

    def ask(self, request: Any) -> Any:
        """The answer of the controller, or of who forwards to it."""
        answers: list[Any] = []
        metadata, network = self.opened.metadata, self.opened.network
        version = metadata.request_update()
        assert metadata.wait_for(version, self.deadline_ms)

        def attempt() -> None:
            node = metadata.cluster.controller
            if node is not None and network.ready(node) and not answers:
                network.send(node, request, answers.append)

        def asked() -> bool:
            self.thread.submit(attempt)
            return bool(answers)

        wait_until(asked, TIMEOUT_S, "no answer")
        return answers[0]

    def coordinator(self, kind: CoordinatorKind, key: str) -> Node | Exception:
        found: list[Node | Exception | None] = [None]

        def look() -> None:
            found[0] = self.machine.coordinators.node(kind, key) or self.machine.coordinators.failure(kind, key)

        def known() -> bool:
            self.thread.submit(look)
            return found[0] is not None

        wait_until(known, TIMEOUT_S, "no coordinator")
        assert found[0] is not None
        return found[0]


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    client = Client(bootstrap)
    yield client
    assert client.thread.close(60_000)


def create(client: Client, topic: str, partitions: int) -> None:
    rows = [CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])]
    (result,) = client.ask(CreateTopicsRequest(topics=rows, timeout_ms=60_000)).topics
    assert result.error_code == 0


def test_a_topic_is_known_with_its_leaders_epochs_and_id(client: Client, topic: str) -> None:
    create(client, topic, 3)
    metadata = client.opened.metadata

    def led() -> bool:
        metadata.wait_for(metadata.want([topic]), client.deadline_ms)
        return all(metadata.cluster.leader(TopicPartition(topic, each)) is not None for each in range(3))

    wait_until(led, TIMEOUT_S, lambda: f"{metadata.cluster.topics}")
    info = metadata.cluster.topics[topic]
    assert info.id != ZERO_UUID
    assert metadata.cluster.names[info.id] == topic
    assert all(partition.leader_epoch >= 0 for partition in info.partitions.values())
    assert metadata.cluster.cluster_id


def test_a_name_that_no_topic_can_have_is_an_error_of_the_topic(client: Client) -> None:
    metadata = client.opened.metadata
    assert metadata.wait_for(metadata.want(["no/topic"]), client.deadline_ms)
    assert isinstance(error_of(metadata.cluster.topics["no/topic"].error_code), InvalidTopicError)


def test_coordinators_are_found_and_an_empty_group_is_refused(client: Client, topic: str) -> None:
    group = client.coordinator(CoordinatorKind.GROUP, f"group-{topic}")
    transaction = client.coordinator(CoordinatorKind.TRANSACTION, f"transaction-{topic}")
    assert isinstance(group, Node)
    assert isinstance(transaction, Node)
    assert group == transaction


def test_requests_are_measured(client: Client, topic: str) -> None:
    create(client, topic, 1)
    metrics = client.opened.metrics
    assert metrics["request-latency-avg"] > 0
    assert metrics["response-total"] <= metrics["request-total"]
    by_node = [key for key in metrics if isinstance(key, tuple) and key[0] == "request-latency-avg"]
    assert by_node


def test_a_connection_that_is_idle_is_closed_and_made_again(bootstrap: str) -> None:
    client = Client(bootstrap, connections_max_idle_ms=200)
    metadata = client.opened.metadata
    counts = client.opened.network.counts
    try:
        assert metadata.wait_for(metadata.request_update(), client.deadline_ms)
        wait_until(lambda: counts.disconnects == counts.connections >= 1, TIMEOUT_S, "it stays open")
        assert metadata.wait_for(metadata.request_update(), client.deadline_ms)
    finally:
        assert client.thread.close(60_000)


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_a_broker_that_is_gone_is_found_again(broker: RunningServer) -> None:
    client = Client(broker.bootstrap)
    metadata = client.opened.metadata
    try:
        assert metadata.wait_for(metadata.request_update(), client.deadline_ms)
        broker.kill()
        version = metadata.request_update()
        assert not metadata.wait_for(version, client.thread.now_ms() + 500)
        broker.start()
        assert metadata.wait_for(version, client.deadline_ms)
    finally:
        assert client.thread.close(60_000)


def test_an_administrators_settings_open_a_network_too(bootstrap: str) -> None:
    opened = open_network(admin_settings(bootstrap_servers=bootstrap))
    opened.network.close()
    assert opened.metrics.domain == "admin-client"


def test_an_empty_group_id_is_an_error_of_its_own(client: Client) -> None:
    """Some brokers refuse it where its coordinator is asked for, others name one and refuse what is asked of it."""
    found = client.coordinator(CoordinatorKind.GROUP, "")
    assert isinstance(found, Node | InvalidGroupIdError)
