"""The network client, and what brokers send by it, against a real broker that is stopped, killed and started again."""

import queue
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.interbroker import ControllerChannel, InterBroker
from kavka.client import AnswerTimeoutError, ClientSettings, DisconnectedError, NetworkClient, Node
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.records.batch import iter_records
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Wire,
    batch_of,
    create_topic,
    fetch_request,
    produce_request,
)

TIMEOUT_S = 60.0
NOW_MS = 1_800_000_000_000


class Asking:
    """A client that is polled until it has what a test wants."""

    def __init__(self, settings: ClientSettings = ClientSettings()) -> None:  # noqa: B008 - it is immutable
        self.client = NetworkClient(settings)

    def until(self, condition: Callable[[], object]) -> None:
        def met() -> bool:
            self.client.poll(20)
            return bool(condition())

        wait_until(met, TIMEOUT_S, "the client waits in vain")

    def ask(self, node: Node, request: Any, version: int | None = None, timeout_ms: float = 30_000) -> Any:
        answers: list[Any] = []
        self.until(lambda: self.client.ready(node))
        versions = None if version is None else (version, version)
        self.client.send(node, request, answers.append, versions=versions, timeout_ms=timeout_ms)
        self.until(lambda: answers)
        return answers[0]


@pytest.fixture
def broker(tmp_path: Path) -> Generator[KavkaProcess, None, None]:
    with KavkaProcess(tmp_path) as broker:
        yield broker


@pytest.fixture
def asking() -> Generator[Asking, None, None]:
    asking = Asking()
    yield asking
    asking.client.close()


def node_of(broker: KavkaProcess, host: str | None = None) -> Node:
    return Node(0, host or broker.host, broker.port)


def test_records_come_back_as_they_were_sent_also_by_name_and_after_a_restart(
    broker: KavkaProcess, asking: Asking
) -> None:
    with Wire(broker.host, broker.port) as wire:
        create_topic(wire, "t")
    node = node_of(broker)
    values = [index.to_bytes(4, "big") * 1000 for index in range(200)]
    batch = batch_of(values, timestamp_ms=NOW_MS)
    sent = asking.ask(node, produce_request("t", batch), PRODUCE_VERSION)
    assert sent.responses[0].partition_responses[0].error_code == 0

    def fetched(at: Node) -> list[bytes | None]:
        answer = asking.ask(at, fetch_request("t", 0), FETCH_VERSION)
        (data,) = answer.responses[0].partitions
        assert data.error_code == 0
        return [record.value for record in iter_records(data.records)]

    assert fetched(node) == values
    assert fetched(node_of(broker, "localhost")._replace(id=7)) == values
    broker.stop()
    asking.until(lambda: not asking.client.ready(node))
    broker.start()
    assert fetched(node) == values


def test_a_killed_broker_fails_what_is_in_flight_and_is_found_again(broker: KavkaProcess, asking: Asking) -> None:
    with Wire(broker.host, broker.port) as wire:
        create_topic(wire, "t")
    node = node_of(broker)
    answers: list[Any] = []
    asking.until(lambda: asking.client.ready(node))
    waits_long = fetch_request("t", 0, max_wait_ms=60_000)
    asking.client.send(node, waits_long, answers.append, versions=(FETCH_VERSION, FETCH_VERSION))
    broker.kill()
    asking.until(lambda: answers)
    assert isinstance(answers[0], DisconnectedError)
    broker.start()
    answer = asking.ask(node, MetadataRequest(topics=None))
    assert [topic.name for topic in answer.topics] == ["t"]


def test_a_broker_that_does_not_answer_in_time_is_left(broker: KavkaProcess, asking: Asking) -> None:
    with Wire(broker.host, broker.port) as wire:
        create_topic(wire, "t")
    waits_long = fetch_request("t", 0, max_wait_ms=60_000)
    late = asking.ask(node_of(broker), waits_long, FETCH_VERSION, timeout_ms=300)
    assert isinstance(late, AnswerTimeoutError)
    assert asking.ask(node_of(broker), MetadataRequest(topics=None)).topics


def test_a_port_where_something_else_answers_is_no_broker(asking: Asking) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        node = Node(1, "127.0.0.1", other.getsockname()[1])
        asking.client.ready(node)
        connection, _ = other.accept()
        with connection:
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            asking.until(lambda: asking.client.counts.bad_answers)
        assert asking.client.failures(node) == 1


def test_the_controller_is_asked_until_it_is_there_to_answer(broker: KavkaProcess) -> None:
    deaths: list[BaseException] = []
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    inter_broker = InterBroker(ClientSettings(reconnect_backoff_max_ms=100), deaths.append)
    channel = ControllerChannel(inter_broker, lambda: node_of(broker), lane="topics", timeout_ms=30_000)
    inter_broker.start()
    try:
        for name in ("before", "after"):
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), answers.put)
            if name == "after":
                broker.start()
            (result,) = answers.get(timeout=TIMEOUT_S).topics
            assert (result.name, result.error_code) == (name, 0)
            if name == "before":
                broker.kill()
    finally:
        channel.close()
        inter_broker.stop()
    assert deaths == []
    assert inter_broker.counts.disconnects >= 1
