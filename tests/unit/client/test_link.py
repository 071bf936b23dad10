"""A node's socket: what it may take of its owner's time."""

import struct
from itertools import count
from typing import Any

from kavka.client import ClientSettings, Node
from kavka.client.connection import Connection
from kavka.client.counts import ClientCounts
from kavka.client.link import READ_AT_ONCE_BYTES, Link, Stage
from kavka.protocol.framing import Arena

SIZE_BYTES = 64 * 1024 * 1024


class Endless:
    """A socket that has something to read whenever it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def recv_into(self, space: memoryview) -> int:
        if self.calls == 0:
            space[:4] = struct.pack(">i", SIZE_BYTES)
        self.calls += 1
        return len(space)


def test_a_node_that_sends_without_end_is_left_for_others() -> None:
    settings = ClientSettings()
    link: Any = Link(Node(1, "host", 1), settings, count())
    link._socket = Endless()
    link._connection = Connection(client_id="c", max_in_flight=1, max_answer_bytes=SIZE_BYTES, discover_versions=False)
    link.stage = Stage.OPEN
    counts, arena = ClientCounts(), Arena()
    turns = 0
    while link.has_socket and counts.received_bytes < SIZE_BYTES // 2:
        before = counts.received_bytes
        assert list(link.frames(arena, counts)) == []
        assert counts.received_bytes - before >= READ_AT_ONCE_BYTES
        turns += 1
    assert turns > 2
