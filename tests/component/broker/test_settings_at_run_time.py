"""Settings changed while a broker runs: what cannot be applied changes nothing, and what can survives a restart."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network import departure
from kavka.broker.server import Broker, StartError
from kavka.broker.settings.config_alteration import MOST_FOR_LISTENERS
from kavka.broker.settings.dynamic_config import PendingChange, check_broker_change
from kavka.cluster.registry.base import RegistryUnavailableError
from kavka.config.values import Source
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.probe import answers
from tests.support.processes import free_port, wait_until
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker, threads, wait_for_threads
from tests.support.wire import BROKER, TOPIC, RawClient

SILENCE_S = 0.5
NAMES = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,THIRD:PLAINTEXT"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path) as running:
        yield running


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server((HOST, 0)) as listening:
        yield listening.getsockname()[1]


def with_listener(running: RunningBroker, *others: str) -> dict[str, str]:
    """The change that adds listeners to the broker's own."""
    own = f"PLAINTEXT://{HOST}:{running.port}"
    return {"listeners": ",".join([own, *others]), "listener.security.protocol.map": NAMES}


def advertised(port: int) -> list[tuple[str, int]]:
    """What a client that comes to `port` is told of brokers."""
    with RawClient(HOST, port) as client:
        return [(broker.host, broker.port) for broker in client.ask(MetadataRequest(topics=[]), 9).brokers]


def wait_until_advertised(port: int, host: str, advertised_port: int) -> None:
    """Until a client that comes to `port` is sent there: the controller hears of a change a moment later."""
    wait_until(lambda: advertised(port) == [(host, advertised_port)], 60, lambda: str(advertised(port)))


def test_what_the_network_side_was_changed_to_is_there_after_a_restart(running: RunningBroker) -> None:
    port = free_port()
    changes = {
        **with_listener(running, f"OTHER://{HOST}:{port}"),
        "advertised.listeners": f"PLAINTEXT://kavka.example:1234,OTHER://{HOST}:{port}",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # More than are ever open: one that was just closed counts until the broker has read its end.
        "max.connections.per.ip": "8",
    }
    assert running.alter(changes).error_code == ErrorCode.NONE

    for _ in range(2):
        described = running.described()
        assert {name: described[name] for name in changes} == {
            name: (value, Source.DYNAMIC_BROKER) for name, value in changes.items()
        }
        assert answers(HOST, port)
        wait_until_advertised(running.port, "kavka.example", 1234)
        wait_until_advertised(port, HOST, port)
        wait_for_threads(network_=2, io_=4)
        wait_for_limit(running.port, 8)
        running.restart()


def wait_for_limit(port: int, count: int) -> None:
    """Until so many connections at a time are answered, and one more is not. Earlier ones may still have to go."""

    def serves_at_most() -> bool:
        with ExitStack() as held:
            try:
                for _ in range(count):
                    held.enter_context(RawClient(HOST, port)).ask(MetadataRequest(topics=[]), 9)
            except ConnectionError:
                return False
            return not answers(HOST, port, SILENCE_S)

    wait_until(serves_at_most, 60, f"not {count} connections are served")


def test_a_dynamic_setting_counts_before_the_clusters_default_before_the_file_after_a_restart(tmp_path: Path) -> None:
    static = {"num.io.threads": "3", "num.network.threads": "2", "log.cleaner.threads": "3"}
    with RunningBroker(tmp_path, static) as running:
        defaults = {"num.io.threads": "4", "num.network.threads": "4"}
        assert running.alter(defaults, name="").error_code == ErrorCode.NONE
        assert running.alter({"num.io.threads": "5"}).error_code == ErrorCode.NONE
        for _ in range(2):
            wait_for_threads(io_=5, network_=4, log_cleaner_=3)
            running.restart()


def test_a_default_that_no_longer_fits_a_topics_settings_counts_and_lets_the_broker_start(
    running: RunningBroker,
) -> None:
    own = {"min.compaction.lag.ms": "1000", "retention.ms": "-1"}
    with RawClient(HOST, running.port) as client:
        client.create_topic("visits", 1, min_compaction_lag_ms="1000", retention_ms="-1")
    changes = {"log.cleaner.max.compaction.lag.ms": "500", "message.max.bytes": "1000"}
    assert running.alter(changes, name="").error_code == ErrorCode.NONE

    for _ in range(2):
        described = running.described(TOPIC, "visits")
        assert {name: described[name][0] for name in own} == own
        with RawClient(HOST, running.port) as client:
            assert client.produce("visits", b"x" * 2000).error_code == ErrorCode.MESSAGE_TOO_LARGE
        running.restart()


def test_a_limit_that_needs_the_clusters_default_holds_after_a_restart(running: RunningBroker) -> None:
    assert running.alter({"max.connections.per.ip.overrides": f"{HOST}:100"}, name="").error_code == ErrorCode.NONE
    assert running.alter({"max.connections.per.ip": "0"}).error_code == ErrorCode.NONE

    running.restart()

    assert running.described()["max.connections.per.ip"] == ("0", Source.DYNAMIC_BROKER)
    assert answers(HOST, running.port)
    stranger = socket.create_connection((HOST, running.port), 60, ("127.0.0.2", 0))
    with stranger, contextlib.suppress(ConnectionResetError):
        assert stranger.recv(1) == b""


def test_a_limit_that_no_longer_fits_the_file_stops_the_start(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, {"max.connections.per.ip.overrides": f"{HOST}:100"}) as running:
        assert running.alter({"max.connections.per.ip": "0"}).error_code == ErrorCode.NONE
        running.broker.stop()
        overrides = running.settings.pop("max.connections.per.ip.overrides")
        with pytest.raises(StartError, match=r"kavka storage settings --delete max\.connections\.per\.ip "):
            running.start()
        running.settings["max.connections.per.ip.overrides"] = overrides
        running.start()
        assert running.described()["max.connections.per.ip"][0] == "0"


def test_who_asks_for_fewer_network_threads_is_answered(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure, "LONGEST_NS", 60_000_000_000)
    for number in range(2):
        assert running.alter({"num.network.threads": "2"}).error_code == ErrorCode.NONE
        with ExitStack() as held:
            # Threads get connections in turn: the one that asks is once with the thread that goes.
            clients = [held.enter_context(RawClient(HOST, running.port)) for _ in range(3)]
            for client in clients:
                client.ask(MetadataRequest(topics=[]), 9)
            answer: Any = clients[number].alter(BROKER, BROKER_ID, [("num.network.threads", "1")])
            assert answer.error_code == ErrorCode.NONE
        wait_until(lambda: threads("network-") == 1, 60, "the other thread is still there")


def test_who_asks_by_a_listener_for_its_end_is_answered_and_then_closed(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure, "LONGEST_NS", 60_000_000_000)
    port = free_port()
    own = {"listeners": f"PLAINTEXT://{HOST}:{running.port}"}
    assert running.alter(with_listener(running, f"OTHER://{HOST}:{port}")).error_code == ErrorCode.NONE

    with RawClient(HOST, port) as client:
        answer: Any = client.alter(BROKER, BROKER_ID, list(own.items()))
        assert answer.error_code == ErrorCode.NONE
        assert client.socket.recv(1) == b""


def test_threads_that_have_ended_are_forgotten(running: RunningBroker) -> None:
    sockets = running.broker._sockets
    for _ in range(4):
        for network, runners in ((2, 4), (1, 2)):
            change = {"num.network.threads": str(network), "num.io.threads": str(runners)}
            assert running.alter(change).error_code == ErrorCode.NONE
            wait_for_threads(network_=network, io_=runners)

    assert running.alter({"num.io.threads": "3"}).error_code == ErrorCode.NONE

    assert (len(sockets.network_threads), len(sockets._retired), len(sockets._io_threads)) == (1, 0, 3)


def test_what_changes_while_logs_are_loaded_counts_before_anybody_can_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, load = free_port(), Broker._load
    others = f"PLAINTEXT://{HOST}:{port},THIRD://{HOST}:{free_port()}"
    changes = {"listeners": others, "advertised.listeners": others, "max.connections.per.ip": "2"}

    def change_meanwhile(broker: Broker) -> None:
        load(broker)
        broker.services.config.broker_changed(int(BROKER_ID), changes)

    monkeypatch.setattr(Broker, "_load", change_meanwhile)
    running = RunningBroker(tmp_path, {"listener.security.protocol.map": NAMES})
    with running:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, running.port))
        wait_until_advertised(port, HOST, port)
        sockets = running.broker._sockets
        wait_until(lambda: sockets.connection_count == 0, 60, lambda: f"{sockets.connection_count} connections")
        with RawClient(HOST, port), RawClient(HOST, port):
            assert not answers(HOST, port)


@pytest.mark.parametrize("address", ["taken", "not ours", "no name"])
def test_listeners_that_cannot_be_opened_are_refused_and_the_old_ones_serve_on(
    running: RunningBroker, taken: int, address: str
) -> None:
    free = free_port()
    wrong = {"taken": f"{HOST}:{taken}", "not ours": f"192.0.2.1:{free_port()}", "no name": f"a..b:{free_port()}"}
    before = running.described()
    held = (threads("acceptor-"), threads("io-"))
    changes = with_listener(running, f"OTHER://{HOST}:{free}", f"THIRD://{wrong[address]}")

    answer = running.alter({**changes, "num.io.threads": "4"})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "listener THIRD cannot" in answer.error_message
    assert wrong[address].partition(":")[0] in answer.error_message
    assert running.described() == before
    assert not answers(HOST, free)
    wait_until(lambda: (threads("acceptor-"), threads("io-")) == held, 60, "what was opened is still there")
    assert running.alter(with_listener(running, f"OTHER://{HOST}:{free}")).error_code == ErrorCode.NONE
    assert answers(HOST, free)
    running.restart()
    assert answers(HOST, free)


def test_a_listener_that_stands_in_its_own_way_is_said_to(running: RunningBroker) -> None:
    answer = running.alter({"listeners": f"PLAINTEXT://localhost:{running.port}"})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "in use by listener PLAINTEXT" in answer.error_message
    assert answers(HOST, running.port)


@pytest.mark.parametrize(
    ("name", "prefix", "last"),
    [
        ("num.io.threads", "io-", "io-3"),
        ("num.network.threads", "network-", "network-1"),
        ("log.cleaner.threads", "log-cleaner-", "log-cleaner-1"),
    ],
)
def test_threads_that_cannot_be_started_leave_their_number_as_it_was(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, name: str, prefix: str, last: str
) -> None:
    before = threads(prefix)
    start = threading.Thread.start

    def refuse_one(thread: threading.Thread) -> None:
        if thread.name == last:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_one)
    answer = running.alter({name: str(2 * before)})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "can't start new thread" in answer.error_message
    wait_until(lambda: threads(prefix) == before, 60, "there are other threads")
    assert running.described()[name] == (str(before), Source.DEFAULT)
    monkeypatch.undo()
    assert running.alter({name: str(2 * before)}).error_code == ErrorCode.NONE
    wait_until(lambda: threads(prefix) == 2 * before, 60, "there are no more threads")


def test_a_change_that_cannot_be_stored_is_taken_back(running: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    change = {**with_listener(running, f"OTHER://{HOST}:{port}"), "num.io.threads": "4"}

    def refuse(operations: Any) -> Any:
        raise RegistryUnavailableError("the disk is full")

    running.errors.expect("the controller cannot go on: the disk is full")
    monkeypatch.setattr(running.broker.services.registry, "multi", refuse)
    answer = running.alter(change)
    monkeypatch.undo()

    assert answer.error_code != ErrorCode.NONE
    wait_until(lambda: threads("io-") == 2 and not answers(HOST, port), 60, "it is still there")
    assert running.alter(change).error_code == ErrorCode.NONE
    assert answers(HOST, port)


def test_a_change_that_fails_closes_nothing_of_one_that_is_on_its_way(running: RunningBroker) -> None:
    config = running.broker.services.config
    ports = [free_port(), free_port()]
    changes = [PendingChange(config), PendingChange(config)]
    for change, port in zip(changes, ports, strict=True):
        listeners = with_listener(running, f"OTHER://{HOST}:{port}")
        change.prepare(check_broker_change(config.current, {}, {**listeners, "log.cleaner.threads": "2"}))
    failed, on_its_way = changes

    failed.end()

    wait_until(lambda: not answers(HOST, ports[0]), 60, "it is still there")
    assert answers(HOST, ports[1])
    assert threads("log-cleaner-") == 2
    assert running.alter({"log.retention.ms": "1000000"}).error_code == ErrorCode.NONE
    assert answers(HOST, ports[1])
    on_its_way.end()
    wait_until(lambda: threads("log-cleaner-") == 1 and not answers(HOST, ports[1]), 60, "it is still there")
    assert answers(HOST, running.port)


def test_a_listeners_own_limits_hold_beside_the_brokers(running: RunningBroker) -> None:
    port = free_port()
    limits = {"listener.name.other.max.connections": "2", "listener.name.plaintext.max.connections": "5"}
    change = {**with_listener(running, f"OTHER://{HOST}:{port}"), **limits}
    assert running.alter(change).error_code == ErrorCode.NONE

    for _ in range(2):
        wait_for_limit(port, 2)
        wait_for_limit(running.port, 5)
        running.restart()


def test_a_limit_for_a_hosts_name_holds_for_its_addresses(running: RunningBroker) -> None:
    assert running.alter({"max.connections.per.ip.overrides": "localhost:2"}).error_code == ErrorCode.NONE

    for _ in range(2):
        wait_for_limit(running.port, 2)
        running.restart()

    answer = running.alter({"max.connections.per.ip.overrides": "a..b:2"})
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "host a..b has no address" in answer.error_message
    wait_for_limit(running.port, 2)


def test_a_limit_for_a_host_without_an_address_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"host a\.\.b has no address"):
        RunningBroker(tmp_path, {"max.connections.per.ip.overrides": "a..b:2"}).start()


def test_other_settings_change_while_a_limited_hosts_name_is_not_resolved(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert running.alter({"max.connections.per.ip.overrides": "localhost:2"}).error_code == ErrorCode.NONE
    resolve = socket.getaddrinfo

    def without_resolver(host: Any, *arguments: Any, **named: Any) -> Any:
        if host == "localhost":
            raise socket.gaierror(socket.EAI_AGAIN, "no resolver answers")
        return resolve(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", without_resolver)

    assert running.alter({"max.connections": "100"}).error_code == ErrorCode.NONE

    wait_for_limit(running.port, 2)


def test_settings_of_listeners_are_taken_to_a_limit(running: RunningBroker) -> None:
    most = {f"listener.name.l{index}.max.connections": "5" for index in range(MOST_FOR_LISTENERS)}
    assert running.alter(most).error_code == 0

    answer = running.alter({"listener.name.more.max.connections": "5"})
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "settings of listeners" in answer.error_message

    assert running.alter({"listener.name.l0.max.connections": "6", "num.io.threads": "4"}).error_code == 0
    assert running.alter({"listener.name.l0.max.connections": None}).error_code == 0
    assert running.alter({"listener.name.more.max.connections": "5"}).error_code == 0
