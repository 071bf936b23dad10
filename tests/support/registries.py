"""Registries for tests: all kinds, and ZooKeepers that lose connections and sessions."""

import itertools
import os
import socket
import struct

import pytest
from kazoo.client import KazooClient

from kavka.cluster.registry.connect_string import ConnectString
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from kavka.cluster.registry.zookeeper_session import SessionSettings
from tests.support.zookeeper_process import LONGEST_SESSION_MS

KINDS = ["embedded", "memory", pytest.param("zookeeper", marks=[pytest.mark.integration, pytest.mark.java])]
"""For the `params` of a fixture: tests then run over each kind."""
CONNECTION_TIMEOUT_MS = 60_000
CLOSE_SESSION = -11
ZOOKEEPERS_SECRET = 0xB3415C00
RANDOM_FACTOR, RANDOM_ADDEND, RANDOM_MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
"""java.util.Random's."""
_roots = itertools.count(1)


class Clock:
    """Goes on by a millisecond at each look."""

    def __init__(self) -> None:
        self.time_ms = 1_000

    def __call__(self) -> int:
        self.time_ms += 1
        return self.time_ms


def new_root() -> str:
    """A root path below which no other test has anything."""
    return f"/tests-{os.getpid()}-{next(_roots)}"


def open_zookeeper(
    bootstrap: str,
    root: str | None = None,
    *,
    session_timeout_ms: int = LONGEST_SESSION_MS,
    login: str | None = None,
    set_acl: bool = False,
    connection_timeout_ms: int = CONNECTION_TIMEOUT_MS,
) -> ZooKeeperRegistry:
    """A registry in ZooKeeper, below a root of its own unless one is given."""
    settings = SessionSettings(
        ConnectString.parse(bootstrap + (new_root() if root is None else root)), session_timeout_ms, 10, login
    )
    return ZooKeeperRegistry(settings, connection_timeout_ms=connection_timeout_ms, set_acl=set_acl)


def client_of(registry: ZooKeeperRegistry) -> KazooClient:
    """kazoo's part of a registry."""
    client = registry._session._client
    assert client is not None
    return client


def expire_session(registry: ZooKeeperRegistry, bootstrap: str) -> None:
    """End a registry's session, as ZooKeeper does when it has heard nothing for too long."""
    session_id, password = client_of(registry).client_id
    close_session(bootstrap, session_id, password)


def end_session_behind(path: str, bootstrap: str) -> None:
    """End the session that an ephemeral node belongs to, whoever has it: at once, as if its time had run out.

    Nothing happens where there is no such node.
    """
    client = KazooClient(bootstrap)
    client.start(CONNECTION_TIMEOUT_MS / 1000)
    try:
        found = client.retry(client.exists, path)
    finally:
        client.stop()
        client.close()
    if found is not None:
        close_session(bootstrap, found.ephemeralOwner, password_of(found.ephemeralOwner))


def password_of(session_id: int) -> bytes:
    """As ZooKeeperServer.generatePasswd makes it of the id: the first bytes of a java.util.Random."""
    state = (session_id ^ ZOOKEEPERS_SECRET ^ RANDOM_FACTOR) & RANDOM_MASK
    password = b""
    for _ in range(4):
        state = (state * RANDOM_FACTOR + RANDOM_ADDEND) & RANDOM_MASK
        password += (state >> 16).to_bytes(4, "little")
    return password


def close_session(bootstrap: str, session_id: int, password: bytes) -> None:
    """In one breath with connecting to it: its owner, who loses its connection by that, connects to it again."""
    host, _, port = bootstrap.rpartition(":")
    connect = struct.pack(">iqiqi16s?", 0, 0, 10_000, session_id, 16, password, False)
    close = struct.pack(">ii", 1, CLOSE_SESSION)
    with socket.create_connection((host, int(port)), timeout=CONNECTION_TIMEOUT_MS / 1000) as connection:
        connection.sendall(b"".join(len(each).to_bytes(4, "big") + each for each in (connect, close)))
        # Until ZooKeeper, which has closed the session, closes the connection.
        while connection.recv(4096):
            pass
