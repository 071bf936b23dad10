"""A broker's core behind SASL: frames in, answers out, with a clock and a timer that tests move."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kavka.broker.requests.session import Gate
from kavka.broker.security.gates import Gates
from kavka.broker.security.sasl.ports import Token
from kavka.cluster.znodes.scram_credential import Look
from kavka.config.broker_config import BrokerConfig
from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kavka.protocol.sasl.plain import plain_message
from kavka.protocol.sasl.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, credential_of
from kavka.protocol.schema import Message, Request, schema_of
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.network_stage import LISTENER, SIZE, FakeSocket

ALL_MECHANISMS: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS: Final = f'{PLAIN_MODULE} required user_alice="alice-secret" user_bob="bob-secret";'
MS: Final = 1_000_000


class ManualTimer:
    """A timer, and its clock."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000
        self.entries: list[tuple[int, Callable[[], object]]] = []

    def schedule(self, callback: Callable[[], object], delay_ms: float) -> Any:
        entry = (self.now_ns + int(delay_ms * MS), callback)
        self.entries.append(entry)
        return entry

    def cancel(self, entry: Any) -> bool:
        if entry not in self.entries:
            return False
        self.entries.remove(entry)
        return True

    def advance(self, ms: float) -> None:
        """Move the clock, and run what is due by then."""
        self.now_ns += int(ms * MS)
        due = [entry for entry in self.entries if entry[0] <= self.now_ns]
        self.entries = [entry for entry in self.entries if entry[0] > self.now_ns]
        for _, callback in sorted(due, key=lambda entry: entry[0]):
            callback()


class Users:
    """Users with SCRAM passwords."""

    def __init__(self, iterations: int = MIN_ITERATIONS, salt: bytes | None = None, **passwords: str) -> None:
        self._credentials = {
            (mechanism, user): credential_of(mechanism, password, iterations, salt)
            for user, password in passwords.items()
            for mechanism in ScramMechanism
        }

    def load(self) -> None:
        """They are there."""

    def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self._credentials.get((mechanism, user))

    def looks(self, mechanism: ScramMechanism) -> list[Look]:
        return sorted(
            Look(each.iterations, len(each.salt), each.salt.isalnum())
            for (own, _), each in self._credentials.items()
            if own is mechanism
        )


class OneToken:
    """A delegation token."""

    def __init__(self, token_id: str, token: Token) -> None:
        self._token_id, self._token = token_id, token

    def find(self, token_id: str) -> Token | None:
        return self._token if token_id == self._token_id else None


class SaslCore:
    """One broker with one SASL listener, and one client's connection to it."""

    def __init__(self, directory: Path, **settings: str) -> None:
        """`settings`: the broker's, with `_` for the dots and `__` for `-`."""
        self.timer = ManualTimer()
        self._gates: Gates | None = None
        self.core = BrokerCore(directory, inline=True, gate_of=self._gate_of)
        self.services: Any = self.core.services
        users: Any = Users(carol="carol-secret")
        self.services.scram_credentials = users
        self.services.now_ms = lambda: NOW_MS + (self.timer.now_ns - 1_000_000_000_000) // MS
        timer: Any = self.timer
        self._gates = Gates(self.services, timer, lambda: self.timer.now_ns)
        self.set(**settings)
        self.connect()

    def set(self, **settings: str) -> None:
        """Have the listener serve by these settings from now on."""
        given = {
            "listener.security.protocol.map": f"{LISTENER}:SASL_PLAINTEXT",
            "listeners": f"{LISTENER}://:9092",
            "sasl.enabled.mechanisms": ALL_MECHANISMS,
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": USERS,
            **{name.replace("__", "-").replace("_", "."): text for name, text in settings.items()},
        }
        assert self._gates is not None
        self._gates.keep_only([BrokerConfig(given)])

    def connect(self) -> None:
        self.core.connect()
        self.socket: FakeSocket = self.core.socket

    @property
    def session(self) -> Any:
        return self.core.connection.session

    @property
    def is_closed(self) -> bool:
        return self.socket.closed

    def send(self, frame: bytes) -> bytes:
        """All that comes back for a frame."""
        return self.send_bytes(SIZE.pack(len(frame)) + frame)

    def send_bytes(self, data: bytes) -> bytes:
        before = len(self.socket.taken)
        self.socket.input += data
        self.core.stage.settle()
        return bytes(self.socket.taken[before:])

    def advance(self, ms: float) -> bytes:
        """What comes in the meantime."""
        before = len(self.socket.taken)
        self.timer.advance(ms)
        self.core.stage.settle()
        return bytes(self.socket.taken[before:])

    def ask(self, request: Request, version: int) -> Any:
        """The answer; None if there was none."""
        return answer_of(self.send(frame_of(request, version)), request, version)

    def shake_hands(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse | None:
        answer: SaslHandshakeResponse | None = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return answer

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse | None:
        answer: SaslAuthenticateResponse | None = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        return answer

    def log_in(self, user: str = "alice", password: str = "alice-secret") -> SaslAuthenticateResponse:
        """By PLAIN."""
        assert self.shake_hands("PLAIN") is not None
        answer = self.authenticate(plain_message(user, password))
        assert answer is not None
        return answer

    def _gate_of(self, listener_name: str) -> Gate | None:
        return None if self._gates is None else self._gates.gate_of(listener_name)


def frame_of(request: Request, version: int, correlation_id: int = 7) -> bytes:
    key = schema_of(type(request)).key
    assert key is not None
    return encode_request_header(key, version, correlation_id, "a-client") + encode(request, version)


def answer_of(data: bytes, request: Request, version: int) -> Any:
    """The one answer in `data`."""
    if not data:
        return None
    key = schema_of(type(request)).key
    assert key is not None
    (size,) = struct.unpack_from(">i", data)
    assert size == len(data) - 4, "one answer, and all of it"
    _, body = decode_response_header(key, version, memoryview(data)[4:])
    kind: type[Message] = api.spec(key).response_class
    return decode(kind, version, memoryview(data)[4 + body :])
