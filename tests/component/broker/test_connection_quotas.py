"""Limits of connections at a running broker: by address, by listener, and the listener between brokers."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.processes import free_port, wait_until
from tests.support.quota_client import QuotaClient
from tests.support.running_broker import HOST, RunningBroker
from tests.support.standing_clock import StandingClock
from tests.support.wire import ClosedError, RawClient

ASKED = MetadataRequest(topics=[])


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def running(tmp_path: Path, clock: StandingClock) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path, {"quota.window.num": "2"}, clock=clock.clock) as running:
        yield running


def is_heard(client: RawClient) -> bool:
    try:
        client.ask(ASKED, 9)
    except (ClosedError, ConnectionError):
        return False
    return True


def test_an_address_opens_so_many_connections_a_second_and_no_more(
    running: RunningBroker, clock: StandingClock
) -> None:
    with QuotaClient(HOST, running.port) as operator, ExitStack() as open_:
        assert operator.change({"ip": HOST}, {"connection_creation_rate": 3})[0] == 0
        began_s = time.monotonic()
        with clock.standing():
            clients = [open_.enter_context(RawClient(HOST, running.port)) for _ in range(8)]
            heard = [is_heard(client) for client in clients]

        # A window has room for three; the others are closed, but not at once.
        assert sum(heard) == 3
        assert time.monotonic() - began_s > 0.2
        assert operator.change({"ip": HOST}, {"connection_creation_rate": None})[0] == 0
        assert all(is_heard(open_.enter_context(RawClient(HOST, running.port))) for _ in range(8))


def test_all_addresses_have_the_default_unless_they_have_their_own(running: RunningBroker) -> None:
    with QuotaClient(HOST, running.port) as operator, ExitStack() as open_:
        assert operator.change({"ip": None}, {"connection_creation_rate": 0})[0] == 0
        assert operator.shown(("ip", 2, None)) == {frozenset({("ip", None)}): {"connection_creation_rate": 0.0}}
        assert not is_heard(open_.enter_context(RawClient(HOST, running.port)))
        assert operator.change({"ip": HOST}, {"connection_creation_rate": 100})[0] == 0

        assert all(is_heard(open_.enter_context(RawClient(HOST, running.port))) for _ in range(8))


def test_brokers_are_let_in_though_clients_take_all_there_is(tmp_path: Path) -> None:
    brokers = free_port()
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:0,BROKERS://{HOST}:{brokers}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": "3",
    }
    with RunningBroker(tmp_path, settings) as running, ExitStack() as open_:
        port = running.broker._sockets.bound_port("PLAINTEXT")
        clients = [open_.enter_context(RawClient(HOST, port)) for _ in range(3)]
        assert all(is_heard(client) for client in clients)
        # The first one was heard last.
        assert is_heard(clients[0])
        broker = open_.enter_context(RawClient(HOST, brokers))

        assert is_heard(broker)
        assert clients[1].closed_by_peer()
        assert [is_heard(client) for client in (clients[0], clients[2])] == [True, True]
        wait_until(lambda: running.broker._sockets.connection_count == 3, 60, "another one was closed")


def test_who_is_too_many_after_a_change_goes(running: RunningBroker) -> None:
    with ExitStack() as open_:
        clients = [open_.enter_context(RawClient(HOST, running.port)) for _ in range(4)]
        assert all(is_heard(client) for client in clients)
        # Behind the listener between brokers, which is protected, there must be another one.
        other = free_port()
        added = {
            "listeners": f"PLAINTEXT://{HOST}:{running.port},OTHER://{HOST}:{other}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        }
        assert running.alter(added).error_code == 0
        others = [open_.enter_context(RawClient(HOST, other)) for _ in range(3)]
        assert all(is_heard(client) for client in others)
        assert running.alter({"max.connections": "5"}).error_code == 0

        wait_until(lambda: running.broker._sockets.connection_count <= 6, 60, "none was closed")
        assert all(is_heard(client) for client in clients)
        assert others[0].closed_by_peer()
