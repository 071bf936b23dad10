"""Many clients that log in at once, by TLS with certificates of their own and SCRAM, and one that sends meanwhile.

The clients are a process of their own, `python -m benchmarks.storm HOST PORT STORES COUNT`, and print when they began
and when all were in. Passwords are salted once: that would cost them more than logging them in costs the broker.
"""

import asyncio
import contextlib
import hashlib
import hmac
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.keyed import is_refused
from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import Connection, check, connect_to, frame_of, run
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.sasl.scram import ScramMechanism, new_salt, salted_password
from kavka.protocol.sasl.scram_messages import (
    NO_BINDING,
    client_final_unsigned,
    client_first,
    read_server_first,
    with_proof,
)
from tests.support.secure_listeners import SECRET, USER
from tests.support.wire import PRODUCE_VERSION, batch_of, produce_request

MECHANISM: Final = ScramMechanism.SHA_256
AT_ONCE: Final = 50
"""As long is a listener's queue (`socket.listen.backlog.size`); who finds no place tries again after a second."""
TIMEOUT_S: Final = 120.0
FIRST: Final = 200
"""So many are sent before the others come."""
PAUSE_S: Final = 0.002
"""Between an answer and the next request of who sends meanwhile."""


def log_in_many(host: str, port: int, stores: Path, count: int) -> tuple[float, float]:
    """Have so many clients log in, in a process of their own: from when until when (`time.monotonic`)."""
    command = [sys.executable, "-m", __name__, host, str(port), str(stores), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"not all were let in:\n{done.stderr[-2000:]}")
    began, ended = map(float, done.stdout.split())
    return began, ended


@contextlib.contextmanager
def sending_one_by_one(host: str, port: int, topic: str, tls: ssl.SSLContext) -> Iterator[list[tuple[float, float]]]:
    """A client on a thread of its own that sends when it has been answered: when, and how long each took (s)."""
    latencies: list[tuple[float, float]] = []
    begun, ended = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            run(_send(host, port, topic, tls, latencies, begun, ended))
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits, whatever it is
            errors.append(error)
        begun.set()

    thread = threading.Thread(target=work, name="sender")
    thread.start()
    try:
        begun.wait(TIMEOUT_S)
        yield latencies
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


async def _send(
    host: str,
    port: int,
    topic: str,
    tls: ssl.SSLContext,
    latencies: list[tuple[float, float]],
    begun: threading.Event,
    ended: threading.Event,
) -> None:
    connection = await connect_to(host, port, tls)
    batch = batch_of([bytes(100)], timestamp_ms=time.time_ns() // 1_000_000)
    frame = frame_of(produce_request(topic, batch), PRODUCE_VERSION)
    sent = 0
    while not ended.is_set():
        sent_at = time.monotonic()
        if is_refused(await connection.answer_to(frame)):
            raise LoadFailedError("a record was refused")
        latencies.append((sent_at, time.monotonic() - sent_at))
        sent += 1
        if sent == FIRST:
            begun.set()
        await asyncio.sleep(PAUSE_S)
    connection.close()


async def _log_in_all(host: str, port: int, context: ssl.SSLContext, count: int) -> tuple[float, float]:
    places = asyncio.Semaphore(AT_ONCE)
    began = time.monotonic()
    connections = await asyncio.gather(*(_log_in(host, port, context, places) for _ in range(count)))
    ended = time.monotonic()
    for connection in connections:
        connection.close()
    return began, ended


async def _log_in(host: str, port: int, context: ssl.SSLContext, places: asyncio.Semaphore) -> Connection:
    async with places:
        connection = await connect_to(host, port, context)
        versions = ApiVersionsRequest(client_software_name="storm", client_software_version="1")
        check((await connection.ask(versions, 3)).error_code, "ApiVersions")
        check((await connection.ask(SaslHandshakeRequest(mechanism=MECHANISM.value), 1)).error_code, "SaslHandshake")
        bare = client_first(USER, new_salt().decode(), {})
        first = await connection.ask(SaslAuthenticateRequest(auth_bytes=(NO_BINDING + bare).encode()), 2)
        check(first.error_code, "SaslAuthenticate")
        answered = await connection.ask(SaslAuthenticateRequest(auth_bytes=_proof(bare, first.auth_bytes)), 2)
        check(answered.error_code, "SaslAuthenticate")
        return connection


def _proof(bare: str, message: bytes) -> bytes:
    received = read_server_first(message)
    unsigned = client_final_unsigned(received.nonce)
    signed = f"{bare},{received.text},{unsigned}".encode()
    client_key, stored_key = _keys(received.salt, received.iterations)
    signature = hmac.digest(stored_key, signed, MECHANISM.hash_name)
    return with_proof(unsigned, bytes(left ^ right for left, right in zip(client_key, signature, strict=True)))


@cache
def _keys(salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = salted_password(MECHANISM, SECRET, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", MECHANISM.hash_name)
    return client_key, hashlib.new(MECHANISM.hash_name, client_key).digest()


def main() -> None:
    host, port, stores, count = sys.argv[1:]
    context = ssl.create_default_context(cafile=str(Path(stores) / "authority.pem"))
    context.load_cert_chain(str(Path(stores) / "client.pem"))
    print(*run(_log_in_all(host, int(port), context, int(count))))


if __name__ == "__main__":
    main()
