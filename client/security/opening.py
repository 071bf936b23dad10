"""A client's security, made of its settings."""

import ssl
from collections.abc import Callable
from typing import Final, Protocol

from kavka.client.node import Node
from kavka.client.security.exchange import sasl_exchange
from kavka.client.security.login_module import OAUTHBEARER, password_mechanism
from kavka.client.security.mechanisms import Mechanism
from kavka.client.security.tls_channel import PIECE_BYTES, TlsChannel
from kavka.client.security_port import Channel, Exchange
from kavka.config.clients.secure import SecureSettings


class Security(Protocol):
    """What all connections of one client, or of one broker to others, are made secure by. Threads: any."""

    def context(self) -> ssl.SSLContext | None:
        """What TLS goes by now; None: without TLS."""

    def mechanism(self) -> Mechanism | None:
        """By what the client says now who it is; None: it does not."""

    def close(self) -> None:
        """Ends the login's thread, if there is one. Again is allowed."""


class FixedSecurity:
    """A Security that stays as it was made."""

    def __init__(
        self,
        context: ssl.SSLContext | None,
        mechanism: Mechanism | None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._context: Final = context
        self._mechanism: Final = mechanism
        self.close: Final = on_close

    def context(self) -> ssl.SSLContext | None:
        return self._context

    def mechanism(self) -> Mechanism | None:
        return self._mechanism


class SecuredByThread:
    """A `Securing` for one network client. Threads: that client's owner alone."""

    def __init__(self, security: Security, on_close: Callable[[], None] = lambda: None) -> None:
        self._security: Final = security
        self._room: memoryview | None = None
        self.close: Final = on_close

    def secured(self, channel: Channel, node: Node) -> TlsChannel | None:
        context = self._security.context()
        if context is None:
            return None
        if self._room is None:
            self._room = memoryview(bytearray(PIECE_BYTES))
        return TlsChannel(channel, context, node, self._room)

    def authentication(self, _node: Node) -> Exchange | None:
        mechanism = self._security.mechanism()
        return None if mechanism is None else sasl_exchange(mechanism)


def open_security(settings: SecureSettings, name: str) -> FixedSecurity:
    """For any protocol but PLAINTEXT. `name` is the client's, for its login's thread.

    Raises ConfigError for what cannot be used, SaslAuthenticationError when no token comes: that is waited for.
    """
    context = context_of(settings)
    if not settings.security_protocol.startswith("SASL_"):
        return FixedSecurity(context, None)
    if settings.sasl_mechanism != OAUTHBEARER:
        return FixedSecurity(context, password_mechanism(settings))
    from kavka.client.security.bearer_login import bearer_login  # HTTP and all that, for those who fetch tokens

    mechanism, login = bearer_login(settings, name)
    login.start()
    return FixedSecurity(context, mechanism, login.close)


def context_of(settings: SecureSettings) -> ssl.SSLContext | None:
    """Raises ConfigError."""
    if settings.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    from kavka.client.tls.contexts import client_context, tls_settings  # cryptography

    return client_context(tls_settings(settings))
