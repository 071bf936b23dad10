"""Addresses to begin with."""

import socket
import threading
from typing import Any

import pytest

from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.node import Node
from kavka.config.errors import ConfigError


def test_servers_are_nodes_with_ids_of_their_own() -> None:
    nodes = bootstrap_nodes(["a:9092", "", "[::1]:9093", "PLAINTEXT://b.example-1.org:9094"])
    assert nodes == (Node(-1, "a", 9092), Node(-2, "::1", 9093), Node(-3, "b.example-1.org", 9094))


@pytest.mark.parametrize("servers", [[], [""], ["a"], ["a:"], [":9092"], ["a:0"], ["a:65536"], ["a b:1"], ["::1:9092"]])
def test_what_is_no_address_is_refused(servers: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        bootstrap_nodes(servers)


def test_canonical_names_are_looked_up_off_the_thread_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address is a server of its own, by its own name."""
    addresses = {"cluster": ["10.0.0.1", "10.0.0.2"], "third": ["10.0.0.2"]}
    names = {"10.0.0.1": "one", "10.0.0.2": "two"}

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        if host not in addresses:
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "getnameinfo", lambda address, _: (names[address[0]], str(address[1])))
    found = threading.Event()
    given = bootstrap_nodes(["cluster:9092", "third:9092", "gone:9092"])
    bootstrap = Bootstrap(given, canonical=True, on_found=found.set)
    assert bootstrap.nodes() == ()
    assert found.wait(60)
    expected = (Node(-1, "one", 9092), Node(-2, "two", 9092), Node(-3, "gone", 9092))
    assert bootstrap.nodes() == expected
    names["10.0.0.1"] = "moved"
    found.clear()
    bootstrap.begin()
    assert bootstrap.nodes() == ()
    assert found.wait(60)
    assert bootstrap.nodes()[0].host == "moved"


def test_what_could_not_be_looked_up_for_want_of_a_thread_is_looked_up_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    found = threading.Event()
    bootstrap = Bootstrap(bootstrap_nodes(["127.0.0.1:9092"]), canonical=True, on_found=found.set)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            bootstrap.nodes()
    assert bootstrap.nodes() == ()
    assert found.wait(60)
    assert bootstrap.nodes()
