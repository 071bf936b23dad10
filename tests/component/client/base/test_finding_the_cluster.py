"""From bootstrap servers to brokers, and back to them when the brokers are gone."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kavka.client.errors import UnsupportedVersionError
from kavka.client.opening import Opened, open_network
from kavka.config.clients import admin_settings
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from tests.support.client_line import HEARTBEAT
from tests.support.processes import free_port, wait_until
from tests.support.scripted_broker import HOST, ScriptedBroker

TIMEOUT_S = 60.0
Answer = Callable[[MetadataRequest], Any]


class Seed:
    """A broker that answers requests for metadata, on as many connections as come, as it is told."""

    def __init__(self, answer: Answer, versions: dict[int, tuple[int, int]] | None = None) -> None:
        self.versions = versions
        self.broker = ScriptedBroker()
        self.answer = answer
        self.asked = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.broker.node.port}"

    def _accept(self) -> None:
        while True:
            try:
                visitor = self.broker.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(visitor,), daemon=True).start()

    def _serve(self, visitor: Any) -> None:
        try:
            visitor.serve_versions(self.versions)
            while True:
                asked = visitor.asked()
                self.asked += 1
                visitor.answer(asked, self.answer(asked.request))
        except OSError:
            return


def naming(*addresses: tuple[int, str, int], **fields: Any) -> Answer:
    brokers = [MetadataResponseBroker(node_id=number, host=host, port=port) for number, host, port in addresses]
    return lambda _request: MetadataResponse(brokers=brokers, topics=[], **fields)


@pytest.fixture
def open_client() -> Iterator[Callable[..., Opened]]:
    opened: list[Opened] = []

    def make(servers: list[str], max_in_flight: int = 5, **keywords: Any) -> Opened:
        quick: dict[str, Any] = {"reconnect_backoff_ms": 10, "retry_backoff_ms": 10, "retry_backoff_max_ms": 20}
        settings = admin_settings(bootstrap_servers=servers, **quick, **keywords)
        opened.append(open_network(settings, max_in_flight=max_in_flight))
        return opened[-1]

    yield make
    for each in opened:
        each.network.close()


def until(opened: Opened, condition: Callable[[], object]) -> None:
    def met() -> bool:
        opened.network.poll(5)
        return bool(condition())

    wait_until(met, TIMEOUT_S, lambda: f"nodes: {opened.metadata.nodes()}")


def test_each_server_is_tried_until_one_answers(open_client: Callable[..., Opened]) -> None:
    seed = Seed(naming((1, HOST, 1)))
    with seed.broker:
        opened = open_client([f"{HOST}:{free_port()}", f"{HOST}:{free_port()}", seed.address])
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        assert opened.metadata.cluster.nodes.keys() == {1}


def test_when_all_brokers_are_gone_the_servers_are_asked_again(open_client: Callable[..., Opened]) -> None:
    gone, there = free_port(), free_port()
    seed = Seed(naming((1, HOST, gone)))
    with seed.broker:
        opened = open_client([seed.address])
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        seed.answer = naming((2, HOST, there))
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.nodes.keys() == {2})
        assert seed.asked == 2


def test_without_rebootstrap_they_are_not(open_client: Callable[..., Opened]) -> None:
    gone = free_port()
    seed = Seed(naming((1, HOST, gone)))
    with seed.broker:
        opened = open_client([seed.address], metadata_recovery_strategy="none")
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        opened.metadata.request_update()
        node = opened.metadata.nodes()[0]
        until(opened, lambda: opened.network.failures(node) >= 3)
        assert seed.asked == 1


def test_a_broker_may_send_its_clients_back_to_the_start(open_client: Callable[..., Opened]) -> None:
    second = Seed(naming((3, HOST, 1)))
    first = Seed(naming((2, HOST, second.broker.node.port)))
    with first.broker, second.broker:
        second.answer = naming(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        opened = open_client([first.address])
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        opened.metadata.request_update()
        until(opened, lambda: second.asked and first.asked == 2)


def test_a_broker_that_names_what_is_no_address_harms_nobody(open_client: Callable[..., Opened]) -> None:
    """Names and ports as no broker has them: the client goes back to its servers when it has tried for long enough."""
    odd = [(1, "", 1), (2, "a\0b", 2), (3, "x" * 300, 3), (4, HOST, -1), (5, HOST, 1 << 20), (6, "\ufffd", 1)]
    seed = Seed(naming(*odd))
    with seed.broker:
        opened = open_client([seed.address], metadata_recovery_rebootstrap_trigger_ms=300)
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        for node in opened.metadata.nodes():
            opened.network.ready(node)
        seed.answer = naming((7, HOST, 1))
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.nodes.keys() == {7})


def test_a_broker_that_is_too_old_is_said_to_be_at_once(open_client: Callable[..., Opened]) -> None:
    seed = Seed(naming((1, HOST, 1)), versions={3: (20, 21), 18: (0, 4)})
    with seed.broker:
        opened = open_client([seed.address])
        version = opened.metadata.request_update()
        until(opened, lambda: opened.network.served(opened.metadata.nodes()[0]))
        opened.network.poll(0)
        with pytest.raises(UnsupportedVersionError, match="serves versions 20 to 21"):
            opened.metadata.wait_for(version, 0)


def test_a_broker_that_is_busy_is_there(open_client: Callable[..., Opened]) -> None:
    """It takes no more requests now, but it need not be looked for."""
    go_on = threading.Event()

    def answer(request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return naming((1, HOST, seed.broker.node.port))(request)
        assert go_on.wait(TIMEOUT_S)
        return HeartbeatResponse(error_code=0)

    seed = Seed(answer)
    with seed.broker:
        opened = open_client([seed.address], max_in_flight=1)
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        (node,) = opened.metadata.nodes()
        until(opened, lambda: opened.network.ready(node))
        answers: list[Any] = []
        opened.network.send(node, HEARTBEAT, answers.append)
        version = opened.metadata.request_update()
        until(opened, lambda: opened.metadata.due_in_ms(time.monotonic() * 1000) == 0)
        for _ in range(3):
            opened.network.poll(1)
        assert opened.metadata.nodes() == (node,)
        go_on.set()
        until(opened, lambda: answers and opened.metadata.cluster.version > version)
        assert opened.network.counts.connections == 2, "to the server, and to the broker that it named"


def test_a_broker_that_cannot_be_reached_has_the_cluster_asked_for_anew(open_client: Callable[..., Opened]) -> None:
    """What was led or coordinated there is elsewhere by now, and metadata.max.age.ms far away."""
    seed = Seed(naming())
    with seed.broker:
        itself = (1, HOST, seed.broker.node.port)
        seed.answer = naming(itself, (2, HOST, free_port()))
        opened = open_client([seed.address])
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        dead = opened.metadata.cluster.nodes[2]
        seed.answer = naming(itself)
        opened.network.ready(dead)
        until(opened, lambda: opened.metadata.cluster.nodes.keys() == {1})


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_a_broker_without_room_for_another_request_is_not_lost(
    strategy: str, open_client: Callable[..., Opened]
) -> None:
    """Metadata are due, and each request is followed by the next: they get the first room, and no other connection."""
    seed = Seed(naming())
    with seed.broker:
        seed.answer = naming((1, HOST, seed.broker.node.port))
        opened = open_client([seed.address], max_in_flight=1, metadata_recovery_strategy=strategy)
        (server,) = opened.metadata.nodes()
        opened.metadata.request_update()
        until(opened, lambda: opened.metadata.cluster.version)
        opened.network.forget(server)
        (node,) = opened.metadata.nodes()
        until(opened, lambda: opened.network.ready(node))
        connections, version = opened.network.counts.connections, opened.metadata.cluster.version
        answers: list[Any] = []

        def keep_busy() -> bool:
            if opened.network.ready(node):
                opened.network.send(node, MetadataRequest(topics=[]), answers.append)
            return opened.metadata.cluster.version > version

        keep_busy()
        opened.metadata.request_update()
        until(opened, keep_busy)
        assert opened.metadata.nodes() == (node,)
        assert opened.network.counts.connections == connections
        answered = len(answers)
        until(opened, lambda: keep_busy() and len(answers) > answered)
