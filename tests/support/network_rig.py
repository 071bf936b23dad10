"""A network thread with what it needs, and clients of it."""

import socket
from collections.abc import Callable

from kavka.broker.metrics.registry import Metrics
from kavka.broker.network.connection import Connection
from kavka.broker.network.limits import ConnectionLimits, ConnectionSettings
from kavka.broker.network.network_thread import NetworkThread
from kavka.broker.network.request_queue import RequestQueue
from kavka.broker.network.settings import NetworkSettings
from kavka.broker.requests.session import Sessions
from tests.support.processes import wait_until

LISTENER, PEER = "PLAINTEXT", "127.0.0.1"


class Rig:
    def __init__(self, max_idle_ms: int = -1) -> None:
        self.limits = ConnectionLimits(ConnectionSettings())
        self.queue = RequestQueue(500, -1)
        self.rejected: list[str] = []
        self.metrics = Metrics()
        self.deaths: list[BaseException] = []
        settings = NetworkSettings(
            max_request_size_bytes=1000, max_idle_ms=max_idle_ms, send_buffer_bytes=-1, receive_buffer_bytes=-1
        )
        self.thread = NetworkThread(
            0,
            self.queue,
            settings,
            self.limits,
            self._run_nothing_inline,
            Sessions(()).new,
            self.metrics,
            lambda contexts: None,
            lambda _, why: self.rejected.append(why),
            self.deaths.append,
        )

    def _run_nothing_inline(self, connection: Connection, _received_ns: int, _cells: object) -> None:
        self.queue.put(connection)

    def adopt(self) -> socket.socket:
        """A client whose other end the thread is given."""
        with socket.create_server((PEER, 0)) as listener:
            client = socket.create_connection(listener.getsockname(), 60)
            accepted, _ = listener.accept()
        accepted.setblocking(False)
        assert self.limits.take_place(LISTENER)
        assert self.limits.admit(LISTENER, PEER)
        self.thread.adopt(accepted, PEER, LISTENER)
        return client

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, 60, "the network thread does nothing")
