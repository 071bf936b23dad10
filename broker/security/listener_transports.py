"""How each listener's connections are carried: which have TLS, with which certificates, and how these are renewed.

What TLS needs is imported when a listener has it. Stores are read anew when their settings change, when somebody asks
(any change of settings, SIGHUP), and when their files are seen to be others than before.
"""

import errno
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.network.connection import Connection
from kavka.broker.network.transports import CLOSED, PLAINTEXT, Transport
from kavka.config.errors import ConfigError, SettingRefusedError

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Labels, Metrics
    from kavka.broker.network.handshakes import Handshakes
    from kavka.broker.security.tls.server_tls import ListenerTls, ServerSettings, ServerTls
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.listeners import Listener

MOST_HANDSHAKE_THREADS: Final = 4
"""One for two processors: they compute without the interpreter's lock, and so take them from those who have clients."""
FAILED_RELOADS: Final = "kavka_tls_failed_reloads"
WITH_TLS: Final = frozenset({"SSL", "SASL_SSL"})

log = logging.getLogger(__name__)


class ListenerTransports:
    """Those of one SocketServer.

    As with its other parts a change has two steps: `prepare` does what may fail, `reconfigure` has it count.

    Threads: any; `_lock` guards the changes, which are swapped whole for `of` and those who read numbers.
    """

    def __init__(self, metrics: "Metrics", on_death: Callable[[BaseException], None], plane: str = "") -> None:
        self._metrics: Final = metrics
        self._on_death: Final = on_death
        self._plane: Final = plane
        self._lock: Final = threading.Lock()
        self._transports: dict[str, Transport] = {}
        self._tls: dict[str, ListenerTls] = {}
        self._prepared: dict[tuple[str, ServerSettings], ServerTls] = {}
        self._handshakes: Handshakes | None = None
        self._is_started = False

    def of(self, listener_name: str) -> Transport:
        """A listener's. Any thread."""
        return self._transports.get(listener_name, CLOSED)

    @property
    def has_tls(self) -> bool:
        """Whether any listener has TLS. Any thread."""
        return bool(self._tls)

    def prepare(self, config: "BrokerConfig", listeners: "Sequence[Listener]") -> None:
        """Make new listeners' TLS, make ready what changes of the others, and read again what is in files.

        Raises SettingRefusedError; what could be made is there then, until `keep_only`.
        """
        with self._lock:
            for listener in listeners:
                transport = self._transports.get(listener.name)
                if transport is not None and transport.security_protocol != listener.security_protocol:
                    reason = f"the security protocol of listener {listener.name} cannot change while it is open"
                    raise SettingRefusedError("listener.security.protocol.map", errno.EINVAL, reason)
                try:
                    self._prepare(config, listener)
                except ConfigError as problem:
                    raise SettingRefusedError(problem.name or "listeners", errno.EINVAL, str(problem)) from problem

    def keep_only(self, wanted: "Sequence[tuple[BrokerConfig, Sequence[Listener]]]") -> None:
        """Forget what none of these configurations has, each with its listeners."""
        with self._lock:
            names = {listener.name for _, listeners in wanted for listener in listeners}
            for name in self._transports.keys() - names:
                del self._transports[name]
                self._tls.pop(name, None)
            if self._prepared:
                kept = {(each.name, _settings(config, each)) for config, listeners in wanted for each in listeners}
                self._prepared = {key: made for key, made in self._prepared.items() if key in kept}

    def reconfigure(self, config: "BrokerConfig", listeners: "Sequence[Listener]") -> None:
        """Have what was prepared for these settings count, for connections that come from now on."""
        with self._lock:
            for listener in listeners if self._prepared else ():
                made = self._prepared.pop((listener.name, _settings(config, listener)), None)
                if made is not None:
                    self._swap(listener.name, made)

    def look(self, *, was_asked: bool = False) -> None:
        """Read the stores again whose files have changed; where somebody `was_asked` for it, all. Any thread."""
        with self._lock:
            for name, tls in self._tls.items():
                try:
                    self._look_at(name, tls, was_asked)
                except ConfigError as problem:
                    self._metrics.count(FAILED_RELOADS)
                    log.error("certificates are not renewed listener=%s reason=%s", name, problem)
                except Exception:
                    # Whoever asks, the thread of signals too, goes on; and so do the other listeners.
                    self._metrics.count(FAILED_RELOADS)
                    log.exception("certificates are not renewed listener=%s", name)

    def seconds_to_expiry(self) -> "list[tuple[Labels, float]]":
        """Until the first certificate of each listener with TLS expires. Any thread."""
        now_s = time.time()
        return [
            ({"listener": name}, tls.current.expires_at.timestamp() - now_s) for name, tls in list(self._tls.items())
        ]

    def connections(self) -> "list[tuple[Labels, float]]":
        """How many are open with TLS, by listener, cipher (Java's name) and version. Any thread."""
        return [
            ({"listener": name, "cipher": cipher, "protocol": version}, float(count))
            for name, tls in list(self._tls.items())
            for (cipher, version), count in tls.connections().items()
        ]

    def start(self) -> None:
        """Start the threads of handshakes, where there is TLS. Raises SettingRefusedError."""
        with self._lock:
            self._is_started = True
            self._start_handshakes()

    def stop(self) -> None:
        """End the threads of handshakes."""
        if self._handshakes is not None:
            self._handshakes.stop()

    def _prepare(self, config: "BrokerConfig", listener: "Listener") -> None:
        name, protocol = listener.name, listener.security_protocol
        if protocol != "PLAINTEXT":
            # For network threads: with a client there may be no descriptor left to import it with.
            importlib.import_module("kavka.broker.network.authentication")
        if protocol not in WITH_TLS:
            self._transports[name] = PLAINTEXT if protocol == "PLAINTEXT" else Transport(protocol, Connection)
            return
        settings = _settings(config, listener)
        tls = self._tls.get(name)
        if tls is None:
            self._add(listener, settings)
        elif tls.current.settings == settings:
            try:
                self._look_at(name, tls)
            except ConfigError:
                self._metrics.count(FAILED_RELOADS)
                raise
        elif (name, settings) not in self._prepared:
            made = _made(name, settings)
            made.check_succession(tls.current)
            self._prepared[name, settings] = made

    def _add(self, listener: "Listener", settings: "ServerSettings") -> None:
        from kavka.broker.network.handshakes import Handshakes
        from kavka.broker.network.tls_connection import TlsConnection
        from kavka.broker.security.authentication_counts import counts_of
        from kavka.broker.security.tls.server_tls import ListenerTls

        importlib.import_module("kavka.broker.network.tls_reading")
        made = _made(listener.name, settings)
        try:
            made.check_validity()
        except ConfigError as problem:
            log.warning("clients will refuse listener=%s reason=%s", listener.name, problem)
        if self._handshakes is None:
            threads = max(1, min((os.cpu_count() or 1) // 2, MOST_HANDSHAKE_THREADS))
            self._handshakes = Handshakes(threads, self._on_death, self._plane)
        if self._is_started:
            # Again, if they could not be started for the listener before.
            self._start_handshakes()
        counts, name = counts_of(self._metrics), listener.name
        # Where SASL follows, it says who a client is.
        succeeded = partial(counts.succeeded, name, False) if listener.security_protocol == "SSL" else lambda: None
        tls = self._tls[name] = ListenerTls(made, succeeded, partial(counts.failed, name, is_repeated=False))
        new_connection = partial(TlsConnection, secured=tls)
        self._transports[listener.name] = Transport(listener.security_protocol, new_connection, self._handshakes)

    def _look_at(self, name: str, tls: "ListenerTls", was_asked: bool = False) -> None:
        from kavka.broker.security.tls.server_tls import fingerprint_of

        current = tls.current
        if not was_asked and fingerprint_of(current.settings.tls) == current.fingerprint:
            return
        made = _made(name, current.settings)
        made.check_succession(current)
        self._swap(name, made)

    def _swap(self, name: str, made: "ServerTls") -> None:
        self._tls[name].current = made
        log.info("certificates are renewed listener=%s expire=%s", name, made.expires_at.isoformat())

    def _start_handshakes(self) -> None:
        if self._handshakes is not None:
            try:
                self._handshakes.start()
            except RuntimeError as failure:
                reason = f"the threads for TLS handshakes cannot be started: {failure}"
                raise SettingRefusedError("listeners", errno.EAGAIN, reason) from failure


def _settings(config: "BrokerConfig", listener: "Listener") -> "ServerSettings":
    from kavka.broker.security.tls.server_tls import server_settings

    return server_settings(config, listener)


def _made(name: str, settings: "ServerSettings") -> "ServerTls":
    from kavka.broker.security.tls.server_tls import ServerTls

    return ServerTls(name, settings)
