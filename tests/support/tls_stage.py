"""The way of a request with TLS, without a network: a listener's side on a stage, and clients that are memory."""

from __future__ import annotations

import ssl
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from kavka.broker.network.handshakes import Handshakes, Step
from kavka.broker.network.tls_connection import TlsConnection
from kavka.broker.network.transports import Transport
from kavka.broker.security.tls.server_tls import ListenerTls, ServerSettings, ServerTls
from kavka.client.tls.contexts import TlsSettings, client_context, tls_settings
from kavka.config.values import Password
from tests.support.certificates import Authority, Issued
from tests.support.network_stage import FakeSocket, Stage
from tests.support.tls_pairs import End

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker")


def inline_settings(own: Issued | None, trusted: Authority | None = AUTHORITY, **others: Any) -> TlsSettings:
    """Stores that stand in the settings themselves."""
    values: dict[str, Any] = {"ssl_keystore_type": "PEM", "ssl_truststore_type": "PEM"}
    if own is not None:
        values["ssl_keystore_key"] = Password(own.key_pem().decode())
        values["ssl_keystore_certificate_chain"] = Password(own.chain_pem().decode())
    if trusted is not None:
        values["ssl_truststore_certificates"] = Password(trusted.pem().decode())
    return tls_settings(SimpleNamespace(**values, **others))


def server_tls(own: Issued = BROKER, rules: str = "DEFAULT", **others: Any) -> ServerTls:
    """A listener's TLS at one moment; `others` as `ssl_client_auth`."""
    return ServerTls("SSL", ServerSettings(inline_settings(own, **others), rules, False, False, False))


class StepsOnStage:
    """Stands for `Handshakes`: steps wait until the test takes them, or are done at once."""

    def __init__(self, at_once: bool) -> None:
        self.waiting: list[Step] = []
        self._at_once = at_once

    def take(self, listener_name: str, step: Step) -> None:
        if self._at_once:
            step()
        else:
            self.waiting.append(step)


class TlsStage(Stage):
    """A stage whose connections have TLS."""

    def __init__(self, tls: ServerTls | None = None, *, at_once: bool = True, **others: Any) -> None:
        self.tls = ListenerTls(tls or server_tls())
        self.steps = StepsOnStage(at_once)
        new_connection = partial(TlsConnection, secured=self.tls)
        super().__init__(transport=Transport("SSL", new_connection, cast(Handshakes, self.steps)), **others)

    def client(self, own: Issued | None = None, socket: FakeSocket | None = None, **others: Any) -> TlsClient:
        return TlsClient(self, client_context(inline_settings(own, **others)), socket)


class TlsClient:
    """One client: what it writes gets into the socket, what the broker sends is read from there."""

    def __init__(self, stage: TlsStage, context: ssl.SSLContext, socket: FakeSocket | None = None) -> None:
        self.stage = stage
        connection, self.socket = stage.connect(socket)
        assert isinstance(connection, TlsConnection)
        self.connection = connection
        self.end = End(context, is_server=False)

    def shake_hands(self) -> None:
        """Until both are done. Raises ssl.SSLError."""
        for _ in range(20):
            self.end.step()
            self.push()
            self.stage.loop.settle()
            self.pull()
            if self.end.is_done and not self.connection.has_finished:
                # In TLS 1.3 the client learns by reading that its certificate was refused.
                self.end.read()
            if self.end.is_done and self.connection.has_finished:
                return
        raise AssertionError(f"no handshake: {self.connection.stage}")

    def push(self) -> None:
        """Give the socket what the client has to say."""
        self.socket.input += self.end.outgoing.read()

    def pull(self) -> None:
        """Take what the broker has sent."""
        self.end.incoming.write(bytes(self.socket.taken))
        self.socket.taken.clear()

    def write(self, data: bytes) -> None:
        """Encrypt, and give it to the socket."""
        view = memoryview(data)
        while view:
            view = view[self.end.tls.write(view) :]
        self.push()

    def read(self) -> bytes:
        """All that the broker has sent, decrypted."""
        self.pull()
        return self.end.read()
