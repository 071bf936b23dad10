"""From the listening sockets to the handlers: acceptors, network threads, the request queue, I/O threads."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kavka.broker.dispatcher import Dispatcher
from kavka.broker.handling import Context, Handler
from kavka.broker.inline_requests import InlineRequests
from kavka.broker.io_thread import IoThread
from kavka.broker.network.acceptor import Acceptor
from kavka.broker.network.connection import Connection
from kavka.broker.network.limits import ConnectionLimits, ConnectionSettings
from kavka.broker.network.network_thread import NetworkSettings, NetworkThread
from kavka.broker.request_queue import RequestQueue

if TYPE_CHECKING:
    from kavka.broker.metrics import Metrics
    from kavka.broker.services import Services
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.listeners import Listener

log = logging.getLogger(__name__)


class SocketServer:
    """The broker's network side.

    Order of use: `bind` (raises OSError), `start`, `listen`, `stop`. Threads: these and `reconfigure` are called by
    one thread at a time (the one that starts and stops the broker, then the one that applies settings).
    """

    def __init__(
        self,
        config: "BrokerConfig",
        handlers: dict[int, Handler],
        services: "Services",
        metrics: "Metrics",
        on_answered: Callable[[list[Context]], None],
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._on_answered = on_answered
        self._on_death = on_death
        self.limits = ConnectionLimits(_connection_settings(config))
        self.queue = RequestQueue(config.queued_max_requests, config.queued_max_request_bytes)
        self._dispatcher = Dispatcher(handlers, services, self.queue, self._rejected)
        self.acceptors: list[Acceptor] = []
        self.network_threads: list[NetworkThread] = []
        self.io_threads: list[IoThread] = []
        self._retired: list[IoThread] = []

    def bind(self) -> None:
        """Take the listeners' addresses; nobody can connect yet. Raises OSError, with what was taken given back."""
        try:
            for listener in self._config.listeners:
                self.acceptors.append(self._acceptor(listener))
        except OSError:
            for acceptor in self.acceptors:
                acceptor.stop()
            self.acceptors.clear()
            raise

    def start(self) -> None:
        """Start the threads that read and run requests."""
        self._resize_network(self._config.num_network_threads)
        self._resize_io(self._config.num_io_threads)

    def listen(self) -> None:
        """Accept connections from now on."""
        for acceptor in self.acceptors:
            acceptor.start()

    def stop_accepting(self) -> None:
        """Let no new connection in."""
        for acceptor in self.acceptors:
            acceptor.stop()
        self.acceptors.clear()

    def stop_running(self) -> None:
        """Let the I/O threads finish what they run, and end."""
        for thread in self.network_threads:
            thread.call(thread.stop_reading)
        self._resize_io(0)
        for ended in self._retired:
            ended.join()

    def stop(self) -> None:
        """Close all connections and end all threads, those that run requests first."""
        self.stop_running()
        for thread in self.network_threads:
            thread.stop()
        self.network_threads.clear()

    def reconfigure(self, config: "BrokerConfig") -> None:
        """Apply what changed in the configuration: limits, numbers of threads, listeners."""
        old, self._config = self._config, config
        self.limits.settings = _connection_settings(config)
        self._resize_network(config.num_network_threads)
        self._resize_io(config.num_io_threads)
        if old.listeners != config.listeners:
            self._change_listeners(config.listeners)

    def bound_port(self, listener_name: str) -> int:
        """The port that a listener was bound to, which the operating system chose where 0 was configured."""
        return next(acceptor.port for acceptor in self.acceptors if acceptor.listener_name == listener_name)

    @property
    def connection_count(self) -> int:
        """How many connections there are."""
        return self.limits.total

    def _change_listeners(self, listeners: "Sequence[Listener]") -> None:
        wanted = {(listener.name, listener.host, listener.port): listener for listener in listeners}
        kept = []
        for acceptor in self.acceptors:
            key = (acceptor.listener_name, acceptor.configured_host, acceptor.configured_port)
            if key in wanted:
                kept.append(acceptor)
                del wanted[key]
            else:
                log.info("listener removed name=%s port=%d", acceptor.listener_name, acceptor.port)
                acceptor.stop()
                for thread in self.network_threads:
                    thread.call(thread.close_listener, acceptor.listener_name)
        self.acceptors = kept
        for listener in wanted.values():
            acceptor = self._acceptor(listener)
            acceptor.start()
            self.acceptors.append(acceptor)
            log.info("listener added name=%s port=%d", acceptor.listener_name, acceptor.port)

    def _acceptor(self, listener: "Listener") -> Acceptor:
        return Acceptor(
            listener.name,
            listener.host,
            listener.port,
            backlog=self._config.socket_listen_backlog_size,
            limits=self.limits,
            network_threads=lambda: self.network_threads,
            on_refused=self._refused,
            on_death=self._on_death,
        )

    def _resize_network(self, count: int) -> None:
        settings = _network_settings(self._config)
        threads = list(self.network_threads)
        while len(threads) < count:
            thread = NetworkThread(
                len(threads),
                self.queue,
                settings,
                self.limits,
                InlineRequests(self._dispatcher.execute).run,
                self._metrics,
                self._on_answered,
                self._rejected,
                self._on_death,
            )
            thread.start()
            self.queue.receivers.append(thread)
            threads.append(thread)
        removed = threads[count:]
        # The acceptors see the shorter list before the threads that left it stop.
        self.network_threads = threads[:count]
        for thread in threads:
            thread.settings = settings
        for thread in removed:
            thread.stop()

    def _resize_io(self, count: int) -> None:
        while len(self.io_threads) < count:
            thread = IoThread(len(self.io_threads), self.queue, self._dispatcher, self._metrics, self._on_death)
            self.queue.finishers.append(thread)
            self.io_threads.append(thread)
            thread.start()
        for _ in range(len(self.io_threads) - count):
            # Whichever thread takes it ends, so which object stands for it does not matter until all end.
            self._retired.append(self.io_threads.pop())
            self.queue.put(None)

    def _rejected(self, connection: Connection, reason: str) -> None:
        self._metrics.count("kavka_network_rejected_requests")
        log.warning(
            "request rejected peer=%s:%d listener=%s reason=%r",
            connection.peer_host,
            connection.peer_port,
            connection.listener_name,
            reason,
        )

    def _refused(self, peer_host: str, reason: str) -> None:
        self._metrics.count("kavka_network_rejected_connections")
        log.warning("connection refused peer=%s reason=%r", peer_host, reason)


def _network_settings(config: "BrokerConfig") -> NetworkSettings:
    return NetworkSettings(
        max_request_size_bytes=config.socket_request_max_bytes,
        max_idle_ms=config.connections_max_idle_ms,
        send_buffer_bytes=config.socket_send_buffer_bytes,
        receive_buffer_bytes=config.socket_receive_buffer_bytes,
    )


def _connection_settings(config: "BrokerConfig") -> ConnectionSettings:
    return ConnectionSettings(
        max_connections=config.max_connections,
        max_per_ip=config.max_connections_per_ip,
        per_ip_overrides=config.max_connections_per_ip_overrides,
        max_creation_rate=config.max_connection_creation_rate,
    )
