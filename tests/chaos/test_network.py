"""The chaos program's links carry, hold up one way alone, let what was late through, and know who connects."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.chaos.network import HOST, Network, owner_of

TIMEOUT_S = 30.0
MOMENT_S = 0.2
HERE, THERE = "here", "there"


class Pair:
    """A connection through a link, both ends of it."""

    def __init__(self, network: Network, stack: ExitStack) -> None:
        self.network = network
        listener = stack.enter_context(socket.create_server((HOST, 0)))
        listener.settimeout(TIMEOUT_S)
        port = network.link(THERE, listener.getsockname()[1], lambda _: HERE)
        self.client = stack.enter_context(socket.create_connection((HOST, port), TIMEOUT_S))
        self.server = stack.enter_context(listener.accept()[0])
        self.server.settimeout(TIMEOUT_S)
        # Accepting is the system's: the link itself may not know of the connection yet.
        self.client.sendall(b"?")
        assert self.server.recv(1) == b"?"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Network() as network, ExitStack() as stack:
        yield Pair(network, stack)


def test_a_way_is_held_up_and_let_go_while_the_other_is_open(pair: Pair) -> None:
    pair.network.hold([(HERE, THERE)])
    pair.client.sendall(b"late")
    pair.server.sendall(b"in time")
    assert pair.client.recv(100) == b"in time"
    pair.server.settimeout(MOMENT_S)
    with pytest.raises(TimeoutError):
        pair.server.recv(100)

    pair.server.settimeout(TIMEOUT_S)
    pair.network.release([(HERE, THERE)], resets=False)

    assert pair.server.recv(100) == b"late"


def test_the_end_of_a_connection_is_held_up_as_its_bytes_are(pair: Pair) -> None:
    pair.network.hold([(HERE, THERE)])
    pair.client.close()
    pair.server.settimeout(MOMENT_S)
    with pytest.raises(TimeoutError):
        pair.server.recv(100)

    pair.server.settimeout(TIMEOUT_S)
    pair.network.release([(HERE, THERE)], resets=False)

    assert pair.server.recv(100) == b""


def test_connections_can_be_reset_instead(pair: Pair) -> None:
    pair.network.hold([(HERE, THERE)])
    pair.client.sendall(b"never")

    pair.network.release([(HERE, THERE)], resets=True)

    for end in (pair.client, pair.server):
        try:
            assert end.recv(100) == b""
        except ConnectionResetError:
            continue


def test_a_connections_owner_is_found_by_its_port(pair: Pair) -> None:
    port = pair.client.getsockname()[1]

    assert owner_of(port, [("nobody", 1 << 30), ("me", os.getpid())]) == "me"
    assert owner_of(port, [("nobody", 1 << 30)]) is None
