"""From the listening sockets to the handlers: acceptors, network threads, the request queue, I/O threads."""

import errno
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from kavka.broker.network.acceptor import Acceptor
from kavka.broker.network.connection import ClientSession, Connection
from kavka.broker.network.limits import (
    ConnectionLimits,
    ConnectionSettings,
    arrivals_of,
    connection_settings,
    limits_by_address,
)
from kavka.broker.network.network_thread import NetworkThread
from kavka.broker.network.request_queue import RequestQueue
from kavka.broker.network.settings import NetworkSettings
from kavka.broker.requests.dispatcher import Dispatcher
from kavka.broker.requests.handling import Context, Handler
from kavka.broker.requests.io_thread import IoThread
from kavka.broker.requests.request_runner import InlineRequests
from kavka.broker.security.listener_transports import ListenerTransports
from kavka.config.errors import SettingRefusedError

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics
    from kavka.broker.services import Services
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.listeners import Listener

log = logging.getLogger(__name__)


class Plane:
    """Which listeners a SocketServer has, and how many threads: all that are not for the controller alone."""

    prefix = ""
    """Of its threads' names."""

    def listeners(self, config: "BrokerConfig") -> "list[Listener]":
        """Those of `config` that it opens."""
        control = config.control_plane_listener_name
        return [each for each in config.listeners if control is None or each.name != control.upper()]

    def network_threads(self, config: "BrokerConfig") -> int:
        return config.num_network_threads

    def io_threads(self, config: "BrokerConfig") -> int:
        return config.num_io_threads

    def queued_requests(self, config: "BrokerConfig") -> int:
        return config.queued_max_requests


class SocketServer:
    """The broker's network side.

    Order of use: `bind` and `start` (both raise OSError), `listen`, `stop_accepting`, `stop`. While it listens, other
    settings come in two steps: `prepare` does what may fail, and only adds; `reconfigure` takes away what is no longer
    wanted, and `keep_only` what was prepared in vain.

    Threads: one starts and stops it. Whichever changes settings calls `prepare`, `keep_only` and `reconfigure`;
    `_lock` keeps them apart, and guards `_listening`, without which they leave everything alone.
    """

    _plane = Plane()

    def __init__(
        self,
        config: "BrokerConfig",
        handlers: dict[int, Handler],
        services: "Services",
        metrics: "Metrics",
        on_answered: Callable[[list[Context]], None],
        on_death: Callable[[BaseException], None],
        new_session: Callable[[str], ClientSession],
    ) -> None:
        """`new_session(listener_name)` makes that of each connection."""
        plane = self._plane
        self._config = self.bound = config
        """As it is now, and as it was when addresses were taken."""
        self._lock = threading.Lock()
        self._listening = False
        self._metrics = metrics
        self._on_answered = on_answered
        self._on_death = on_death
        self.limits = ConnectionLimits(ConnectionSettings(), arrivals=arrivals_of(metrics))
        self._prepared_limits = ConnectionSettings()
        self.queue = RequestQueue(plane.queued_requests(config), config.queued_max_request_bytes)
        self._dispatcher = Dispatcher(handlers, services, self.queue, self._rejected)
        self._new_session = new_session
        self._transports = ListenerTransports(metrics, on_death, plane.prefix)
        self.acceptors: list[Acceptor] = []
        self.network_threads: list[NetworkThread] = []
        self._retired: list[NetworkThread] = []
        self._io_threads: list[IoThread] = []
        """Those that end too: whichever takes a None from the queue is the one that does."""
        self._io_count = 0

    def bind(self) -> None:
        """Take the listeners' addresses; nobody can connect yet. Raises OSError, with what was taken given back.

        It is a SettingRefusedError where another text of one setting would do.
        """
        config = self.bound = self._config
        by_address = limits_by_address(config.max_connections_per_ip_overrides)
        self.limits.settings = self._prepared_limits = connection_settings(config, by_address)
        self._transports.prepare(config, self._plane.listeners(config))
        try:
            for listener in self._plane.listeners(config):
                self.acceptors.append(self._acceptor(listener))
        except OSError as failure:
            for acceptor in self.acceptors:
                acceptor.stop()
            self.acceptors.clear()
            raise SettingRefusedError("listeners", failure.errno, failure.strerror or str(failure)) from failure

    def start(self) -> None:
        """Start the threads that read and run requests. Raises OSError if there cannot be so many."""
        self._transports.start()
        self._grow(self._config)

    def listen(self) -> None:
        """Accept connections from now on, by the settings of this moment, which stay meanwhile. Raises OSError."""
        bound = list(self.acceptors)
        with self._lock:
            self._listening = True
            latest, self._config = self._config, self.bound
        if latest is not self.bound:
            # What has changed since then was left alone: logs may take minutes to load.
            self.prepare(latest)
            self.reconfigure(latest)
        with self._lock:
            for acceptor in [each for each in bound if each in self.acceptors]:
                acceptor.start()

    def stop_accepting(self) -> None:
        """Let no new connection in; settings that change from now on change nothing here."""
        with self._lock:
            self._listening = False
        for acceptor in self.acceptors:
            acceptor.stop()
        self.acceptors.clear()

    def cut(self) -> None:
        """Let no new connection in and close those there are: nobody is answered any more. `stop` it later."""
        self.stop_accepting()
        for thread in (*self.network_threads, *self._retired):
            thread.call_and_wait(thread.close_all)

    def stop_running(self) -> None:
        """Run what was read, and nothing more: the I/O threads end, the network threads only write answers."""
        for thread in (*self.network_threads, *self._retired):
            # Else one would park a fetch when those that are parked have been answered already.
            thread.call_and_wait(thread.stop_reading)
        self._end_io_threads(0)
        for runner in self._io_threads:
            runner.join()
        self.queue.is_abandoned = True

    def stop(self) -> None:
        """Close all connections and end all threads, those that run requests first."""
        self.stop_running()
        for thread in (*self.network_threads, *self._retired):
            thread.stop()
        self.network_threads.clear()
        self._forget_ended()
        self._transports.stop()

    def prepare(self, config: "BrokerConfig") -> None:
        """Open the listeners and start the threads that `config` has and the present configuration has not.

        They serve at once; what shall go stays until `reconfigure`. Raises OSError: what could be opened and started
        is there then, until `keep_only`.
        """
        with self._lock:
            if not self._listening:
                return
            limits = connection_settings(config, self._overrides_of(config))
            self._grow(config)
            self._transports.prepare(config, self._plane.listeners(config))
            self._open(self._plane.listeners(config))
            self._prepared_limits = limits

    def keep_only(self, configs: "Sequence[BrokerConfig]") -> None:
        """Close the listeners and end the threads that none of these configurations has."""
        with self._lock:
            if self._listening:
                self._shrink(configs)

    def reconfigure(self, config: "BrokerConfig", pending: "Sequence[BrokerConfig]" = ()) -> None:
        """Apply the configuration that was prepared last: limits, numbers of threads, listeners.

        What those that are `pending` have stays open.
        """
        with self._lock:
            self._config = config
            if self._listening:
                self.limits.settings = self._prepared_limits
                self._transports.reconfigure(config, self._plane.listeners(config))
                self._close_excess()
                self._shrink([config, *pending])

    @property
    def listener_names(self) -> list[str]:
        """The names of the listeners that are open."""
        return [acceptor.listener_name for acceptor in self.acceptors]

    def bound_port(self, listener_name: str) -> int:
        """The port that a listener was bound to, which the operating system chose where 0 was configured."""
        return next(acceptor.port for acceptor in self.acceptors if acceptor.listener_name == listener_name)

    @property
    def transports(self) -> "list[ListenerTransports]":
        """How the listeners' connections are carried: one for each plane."""
        return [self._transports]

    @property
    def connection_count(self) -> int:
        """How many connections there are."""
        return self.limits.total

    @property
    def waiting_count(self) -> int:
        """How many requests have been read and not been run. Any thread."""
        return sum([thread.waiting_count for thread in (*self.network_threads, *self._retired)])

    def _overrides_of(self, config: "BrokerConfig") -> Mapping[str, int]:
        """Limits by address. Raises OSError for a host that has none.

        Hosts are looked up only when their setting changes: others must not wait for a resolver, nor fail with it.
        """
        hosts = config.max_connections_per_ip_overrides
        if hosts == self._config.max_connections_per_ip_overrides:
            return self.limits.settings.per_ip_overrides
        return limits_by_address(hosts)

    def _open(self, listeners: "Sequence[Listener]") -> None:
        present = {_address(acceptor) for acceptor in self.acceptors}
        for listener in listeners:
            if (listener.name, listener.host, listener.port) in present:
                continue
            try:
                acceptor = self._acceptor(listener)
            except OSError as failure:
                own = next((each.listener_name for each in self.acceptors if each.port == listener.port), None)
                if own is None or failure.errno != errno.EADDRINUSE:
                    raise
                reason = f"{failure.strerror} by listener {own}, which another change has to remove first"
                raise OSError(failure.errno, reason) from failure
            try:
                acceptor.start()
            except OSError:
                acceptor.stop()
                raise
            self.acceptors.append(acceptor)
            log.info("listener added name=%s port=%d", acceptor.listener_name, acceptor.port)

    def _close_others(self, listeners: "Sequence[Listener]") -> None:
        wanted = {(listener.name, listener.host, listener.port) for listener in listeners}
        surplus = [acceptor for acceptor in self.acceptors if _address(acceptor) not in wanted]
        self.acceptors = [acceptor for acceptor in self.acceptors if _address(acceptor) in wanted]
        for acceptor in surplus:
            log.info("listener removed name=%s port=%d", acceptor.listener_name, acceptor.port)
            acceptor.stop()
            for thread in self.network_threads:
                thread.call(thread.close_listener, acceptor.listener_name, acceptor.host, acceptor.port)

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
            on_excess=self._close_excess,
        )

    def _grow(self, config: "BrokerConfig") -> None:
        """Start the threads that are missing. Raises OSError; those that could be started stay."""
        self._forget_ended()
        settings = _network_settings(config)
        while len(self.network_threads) < self._plane.network_threads(config):
            thread = NetworkThread(
                len(self.network_threads),
                self.queue,
                settings,
                self.limits,
                InlineRequests(self.queue, self._dispatcher).run,
                self._new_session,
                self._metrics,
                self._on_answered,
                self._rejected,
                self._on_death,
                self._plane.prefix,
                self._transports.of,
            )
            try:
                thread.start()
            except RuntimeError as failure:
                thread.stop()
                raise _no_thread(failure, "num.network.threads", config.num_network_threads) from failure
            self.network_threads = [*self.network_threads, thread]
        while self._io_count < self._plane.io_threads(config):
            runner = IoThread(
                self._io_count, self.queue, self._dispatcher, self._metrics, self._on_death, self._plane.prefix
            )
            try:
                runner.start()
            except RuntimeError as failure:
                raise _no_thread(failure, "num.io.threads", config.num_io_threads) from failure
            self._io_threads.append(runner)
            self._io_count += 1

    def _shrink(self, configs: "Sequence[BrokerConfig]") -> None:
        """Take away what none of these has."""
        plane = self._plane
        self._close_others([listener for config in configs for listener in plane.listeners(config)])
        self._transports.keep_only([(config, plane.listeners(config)) for config in configs])
        most = max(plane.network_threads(config) for config in configs)
        removed = self.network_threads[most:]
        # The acceptors see the shorter list before the threads that left it stop.
        self.network_threads = self.network_threads[:most]
        for thread in removed:
            # Not waited for: what it still has to answer may be the request for this very change.
            self._retired.append(thread)
            thread.retire()
        self._end_io_threads(max(plane.io_threads(config) for config in configs))
        self._forget_ended()

    def _end_io_threads(self, left: int) -> None:
        while self._io_count > left:
            self._io_count -= 1
            self.queue.put(None)

    def _forget_ended(self) -> None:
        """Let go of the threads that have ended since the last change."""
        for thread in [thread for thread in self._retired if not thread.is_alive]:
            thread.stop()
            self._retired.remove(thread)
        self._io_threads = [runner for runner in self._io_threads if runner.is_alive]

    def _close_excess(self) -> None:
        """Close what is one too many: what has been idle for the longest time, but for brokers' connections."""
        excess = self.limits.excess
        if excess:
            protected = self.limits.settings.protected_listener
            others = [
                connection
                for thread in self.network_threads
                for connection in list(thread.connections.values())
                if connection.listener_name != protected
            ]
            open_ = [each for each in others if not each.closing]
            for each in nsmallest(excess - len(others) + len(open_), open_, key=lambda each: each.last_active_ns):
                each.close("there are too many connections")

    def _rejected(self, connection: Connection, reason: str) -> None:
        self._metrics.count("kavka_network_rejected_requests")
        connection.session.rejected(connection.listener_name)
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


def _address(acceptor: Acceptor) -> tuple[str, str, int]:
    return acceptor.listener_name, acceptor.configured_host, acceptor.configured_port


def _no_thread(failure: RuntimeError, name: str, count: int) -> OSError:
    return SettingRefusedError(name, errno.EAGAIN, f"the threads for {name}={count} cannot be started: {failure}")


def _network_settings(config: "BrokerConfig") -> NetworkSettings:
    return NetworkSettings(
        max_request_size_bytes=config.socket_request_max_bytes,
        max_idle_ms=config.connections_max_idle_ms,
        send_buffer_bytes=config.socket_send_buffer_bytes,
        receive_buffer_bytes=config.socket_receive_buffer_bytes,
        authentication_timeout_ms=config.kavka_authentication_timeout_ms,
    )
