"""Listening: one thread a listener accepts connections and deals them to the network threads, round robin."""

import errno
import logging
import os
import select
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.network.addresses import plain_address
from kavka.broker.network.limits import FULL_WAIT_S
from kavka.config.thread_names import thread_name

if TYPE_CHECKING:
    from kavka.broker.network.delayed_closes import DelayedCloses
    from kavka.broker.network.limits import ConnectionLimits
    from kavka.broker.network.network_thread import NetworkThread
    from kavka.broker.network.settings import NetworkSettings

NO_IPV6: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
OUT_OF_MEMORY: Final = frozenset({errno.ENOBUFS, errno.ENOMEM})
PAUSE_S: Final = 0.2
UNPACED: Final = b"reno"
"""A congestion control that every Linux has, that anybody may choose, and that sends as soon as it may."""

log = logging.getLogger(__name__)


class Acceptor:
    """Accepts on one listener. The socket is bound by the constructor, which raises OSError; `start` begins accepting.

    Out of file descriptors it gives up a spare one to accept the waiting client and close its connection, so that
    the client learns of it, and pauses. Threads: its own; `stop` joins it.
    """

    def __init__(
        self,
        listener_name: str,
        host: str,
        port: int,
        *,
        backlog: int,
        limits: "ConnectionLimits",
        network_threads: Callable[[], "Sequence[NetworkThread]"],
        on_refused: Callable[[str, str], None],
        on_death: Callable[[BaseException], None],
        on_excess: Callable[[], object] = lambda: None,
    ) -> None:
        """`on_excess()` is called when there are more connections than there may be, as this listener is protected."""
        self.listener_name: Final = listener_name
        self._limits = limits
        self._network_threads = network_threads
        self._on_refused = on_refused
        self._on_death = on_death
        self._on_excess = on_excess
        self._delayed: DelayedCloses | None = None
        self._backlog = backlog
        try:
            self._socket = _bind(host, port)
        except OSError as failure:
            reason = f"listener {listener_name} cannot bind {host or '*'}:{port}: {failure.strerror}"
            raise OSError(failure.errno, reason) from failure
        except UnicodeError as failure:
            raise OSError(errno.EINVAL, f"listener {listener_name} cannot bind {host}: no host's name") from failure
        self.configured_host: Final = host
        self.configured_port: Final = port
        self.host: Final[str] = plain_address(self._socket.getsockname()[0])
        self.port: Final[int] = self._socket.getsockname()[1]
        try:
            self._wake_receive, self._wake_send = os.pipe()
        except OSError:
            self._socket.close()
            raise
        self._spare = _open_spare()
        self._dealt = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=thread_name(f"acceptor-{listener_name}"), daemon=True)

    def start(self) -> None:
        """Accept from now on. Raises OSError if another process listens there, or there cannot be another thread."""
        try:
            self._socket.listen(self._backlog)
            self._thread.start()
        except OSError as failure:
            where = f"{self.configured_host or '*'}:{self.configured_port}"
            reason = f"listener {self.listener_name} cannot listen on {where}: {failure.strerror}"
            raise OSError(failure.errno, reason) from failure
        except RuntimeError as failure:
            reason = f"the thread of listener {self.listener_name} cannot be started: {failure}"
            raise OSError(errno.EAGAIN, reason) from failure

    def stop(self) -> None:
        """Stop listening and join the thread."""
        self._stopping = True
        os.write(self._wake_send, b"\0")
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()
        if self._delayed is not None:
            self._delayed.close_all()
        for file_descriptor in (self._wake_receive, self._wake_send, self._spare):
            if file_descriptor >= 0:
                os.close(file_descriptor)

    def _run(self) -> None:
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            poll.register(self._wake_receive, select.POLLIN)
            while not self._stopping:
                due_ms = None if self._delayed is None else self._delayed.close_due()
                if poll.poll(due_ms) and not self._stopping and self._has_place():
                    self._accept()
        except BaseException as failure:
            self._on_death(failure)
            raise

    def _has_place(self) -> bool:
        """Wait until the client that waits may be accepted, and take its place; False if there is none any more."""
        wait_s = self._limits.arrive(self.listener_name)
        while not self._stopping:
            if wait_s:
                self._pause(wait_s)
                wait_s = 0
            elif self._limits.take_place(self.listener_name):
                if self._limits.excess:
                    self._on_excess()
                return True
            else:
                self._pause(FULL_WAIT_S)
        return False

    def _accept(self) -> None:
        """Accept the client that waits, for which a place has been taken."""
        try:
            client, address = self._socket.accept()
        except OSError as failure:
            self._limits.give_place_back(self.listener_name)
            if failure.errno in OUT_OF_DESCRIPTORS:
                self._refuse_one()
            elif failure.errno in OUT_OF_MEMORY:
                self._pause(PAUSE_S)
            # Else the client was gone before it was accepted.
            return
        peer_host = plain_address(address[0])
        delay_ms = self._limits.throttle_ms(self.listener_name, peer_host)
        if delay_ms:
            self._close_later(client, delay_ms)
            return
        if not self._limits.admit(self.listener_name, peer_host):
            client.close()
            self._on_refused(peer_host, "too many connections from this address")
            return
        try:
            threads = self._network_threads()
            thread = threads[self._dealt % len(threads)]
            _configure(client, peer_host, thread.settings)
        except OSError as failure:
            client.close()
            self._limits.released(self.listener_name, peer_host)
            log.debug("connection lost while accepting peer=%s error=%r", peer_host, str(failure))
            return
        self._dealt += 1
        thread.adopt(client, peer_host, self.listener_name)

    def _close_later(self, client: socket.socket, delay_ms: int) -> None:
        if self._delayed is None:
            try:
                from kavka.broker.network.delayed_closes import DelayedCloses
            except (OSError, ImportError):
                # There may be no descriptor to import it with: this client need not wait.
                log.exception("closed at once: nobody can be kept waiting")
                client.close()
                return
            self._delayed = DelayedCloses()
        self._delayed.add(client, delay_ms)

    def _refuse_one(self) -> None:
        """Out of file descriptors: accept one client with the spare one, to close it."""
        if self._spare >= 0:
            os.close(self._spare)
        try:
            client, address = self._socket.accept()
        except OSError:
            log.debug("no client left to refuse")
        else:
            client.close()
            self._on_refused(plain_address(address[0]), "out of file descriptors")
        self._spare = _open_spare()
        self._pause(PAUSE_S)

    def _pause(self, seconds: float) -> None:
        # Not select: it refuses descriptors from 1024 on, which a listener that is added late may have.
        poll = select.poll()
        poll.register(self._wake_receive, select.POLLIN)
        poll.poll(seconds * 1000)


def _configure(client: socket.socket, peer_host: str, settings: "NetworkSettings") -> None:
    client.setblocking(False)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if settings.send_buffer_bytes >= 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.receive_buffer_bytes >= 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
    if plain_address(client.getsockname()[0]) == peer_host:
        # Nothing lies between that could be congested. BBR, where it is the system's, would set timers for each 64 KiB,
        # which cost more than sending them. What imitates Linux may know no other than its own, and keeps it.
        with suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)


def _open_spare() -> int:
    """A descriptor to give up when there are no others; -1 if another thread was faster to take the last one."""
    try:
        return os.open(os.devnull, os.O_RDONLY)
    except OSError as failure:
        if failure.errno not in OUT_OF_DESCRIPTORS:
            raise
        return -1


def _bind(host: str, port: int) -> socket.socket:
    """A bound socket; an empty host is every address, by IPv6 and IPv4 where the machine has both."""
    if not host and socket.has_dualstack_ipv6():
        try:
            return _bound(socket.AF_INET6, ("::", port))
        except OSError as failure:
            if failure.errno not in NO_IPV6:
                raise
    if not host:
        return _bound(socket.AF_INET, ("0.0.0.0", port))
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return _bound(family, address)


def _bound(family: int, address: Any) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        # A client that goes between poll and accept must not make accept wait for the next one.
        bound.setblocking(False)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
