"""How this broker makes connections to others secure: by the listener at which it calls, as its settings are now."""

import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kavka.client.api_errors_cluster import SaslAuthenticationError
from kavka.client.security.login_module import OAUTHBEARER, password_mechanism
from kavka.client.security.mechanisms import Mechanism
from kavka.client.security.opening import FixedSecurity, context_of, open_security
from kavka.config.clients.towards_brokers import secure_towards
from kavka.config.errors import ConfigError

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.clients.secure import SecureSettings

log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int] | None, ...]


class ListenerSecurity:
    """A `Security`. Certificates and passwords that change count from the next connection on; what cannot be used is
    logged, and those of before stay. OAUTHBEARER's login stays as it was at the start.

    Threads: any. `_lock` guards all, and is held while small files are read.
    """

    def __init__(self, config: "Callable[[], BrokerConfig]", listener_name: str) -> None:
        """Raises ConfigError, also when no token comes to log in with: that is waited for."""
        self._config: Final = config
        self._listener_name: Final = listener_name
        self._lock: Final = threading.Lock()
        self._seen: BrokerConfig = config()
        settings = secure_towards(self._seen, listener_name)
        self._values: Mapping[str, Any] = _values_of(settings)
        self._stamp = _stamp_of(settings)
        self._settings = settings
        self._complaint = ""
        """What cannot be used now; it is said once."""
        try:
            self._made: FixedSecurity = open_security(settings, f"broker-{self._seen.broker_id}")
        except SaslAuthenticationError as failure:
            raise ConfigError("sasl.mechanism.inter.broker.protocol", OAUTHBEARER, str(failure)) from None

    def context(self) -> ssl.SSLContext | None:
        return self._newest().context()

    def mechanism(self) -> Mechanism | None:
        return self._newest().mechanism()

    def close(self) -> None:
        self._made.close()

    def _newest(self) -> FixedSecurity:
        with self._lock:
            config = self._config()
            if config is not self._seen:
                self._seen = config
                self._take(config)
            elif self._complaint or _stamp_of(self._settings) != self._stamp:
                self._make(self._settings)
            return self._made

    def _take(self, config: "BrokerConfig") -> None:
        """Other settings than before; mostly they are not these."""
        try:
            settings = secure_towards(config, self._listener_name)
        except ConfigError as failure:
            self._complain(failure)
            return
        values = _values_of(settings)
        if values != self._values:
            self._settings, self._values = settings, values
            self._make(settings)

    def _make(self, settings: "SecureSettings") -> None:
        """What fails is tried again for the next connection: it may have been for want of a descriptor."""
        before = self._made
        # Looked at first: what is written while it is read shows by the next look.
        self._stamp = _stamp_of(settings)
        try:
            mechanism = before.mechanism()
            if mechanism is not None and OAUTHBEARER not in (mechanism.name, settings.sasl_mechanism):
                mechanism = password_mechanism(settings)
            self._made = FixedSecurity(context_of(settings), mechanism, before.close)
            self._complaint = ""
        except (ConfigError, OSError) as failure:
            if str(failure) != self._complaint:
                self._complaint = str(failure)
                self._complain(failure)

    def _complain(self, failure: Exception) -> None:
        log.error("towards other brokers the former ways stay listener=%s reason=%r", self._listener_name, str(failure))


def _values_of(settings: "SecureSettings") -> Mapping[str, Any]:
    return {name: getattr(settings, row.attribute) for name, row in settings.ROWS.items()}


def _stamp_of(settings: "SecureSettings") -> _Stamp:
    """By which it is seen that the files are others, under the same names."""
    return tuple(_file_stamp(path) for path in (settings.ssl_keystore_location, settings.ssl_truststore_location))


def _file_stamp(path: str | None) -> tuple[int, int, int] | None:
    if not path:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
