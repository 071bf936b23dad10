"""Rows of brokers with security: what TLS, logins, ACLs and quotas cost. See benchmarks/security.py."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, pairwise
from typing import Final

from benchmarks import librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import LoadFailedError, Produce
from benchmarks.row import CPU, RATE, Better, Goal, Measurement, Metric, Row, Scale, UnavailableError
from benchmarks.rows.produce import ONE_A_REQUEST, PARTITIONS
from benchmarks.security_contestants import SUPER_USER, check_cipher, stores_of, way_of
from benchmarks.storm import log_in_many, sending_one_by_one
from benchmarks.wire_load import check, connect_to, frame_of, run
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.sasl.plain import plain_message
from tests.support.probe import API_VERSIONS_V0
from tests.support.secure_listeners import BROKER_SECRET, SECRET, USER
from tests.support.server import RunningServer

LOGINS: Final = Metric("logins_s", "until all are in, s", Better.LESS)
OTHERS_P99: Final = Metric("others_p99_ms", "others' in-flight-1 p99 meanwhile, ms", Better.LESS)
ANSWER: Final = Metric("answer_ms", "an answer, ms", Better.LESS, 1)
ABOVE_PLAINTEXT: Final = Metric("above_kib", "an idle connection above plaintext, KiB", Better.LESS, 1)
PLAINTEXT_IDLE: Final = Metric("plain_kib", "an idle connection, plaintext, KiB", Better.LESS, 1)

CONNECTIONS: Final = 500
MANY_TOPICS: Final = 10_000
METADATA_VERSION: Final = 9
ANSWERS: Final = 20
IDLE: Final = 500
FIRST_IDLE: Final = 50
KIB: Final = 1024
_numbers = count(1)

HUNDRED: Final = Produce(4_000_000, 100, properties={"linger.ms": "5"})
THOUSAND: Final = Produce(800_000, 1000, properties={"linger.ms": "0"})
SINGLE: Final = Produce(100_000, 100, properties=ONE_A_REQUEST)
IN_FLIGHT_1: Final = Produce(20_000, 100, properties={**ONE_A_REQUEST, "max.in.flight": "1"})
LOADS: Final[Mapping[str, tuple[str, Produce]]] = {
    "100b": ("produce 100 B, linger 5 ms", HUNDRED),
    "1000b": ("produce 1000 B, linger 0", THOUSAND),
    "single": ("produce 100 B, one message a request", SINGLE),
    "inflight1": ("produce 100 B, one message a request, in-flight 1", IN_FLIGHT_1),
}


def cpu_s(server: RunningServer) -> float:
    """As `Process.cpu_seconds`, to the nanosecond: some of these rows compare a second with a second."""
    return time.clock_gettime((~server.process.pid << 3) | 2)


class ProduceRow(Row):
    """A load by the way that the contestant's loads come."""

    def __init__(self, prefix: str, load: str, *goals: Goal, times: float = 1) -> None:
        """`times`: as much of the load."""
        title, self._load = LOADS[load]
        self._load = replace(self._load, messages=round(self._load.messages * times))
        self.name = f"{prefix}-{load}"
        self.title = f"{prefix}: {title}"
        self.goals = goals

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        way = way_of(server)
        properties = {**(self._load.properties or {}), **way.properties}
        load = replace(self._load, messages=scale.count(self._load.messages), properties=properties)
        with topics.topic(server, PARTITIONS) as topic:
            before = cpu_s(server)
            done = librdkafka.produce(way, topic, load)
            return {RATE: done.rate, CPU: cpu_s(server) - before}


class ConsumeRow(Row):
    """The same topic in every round, from the page cache on both sides."""

    def __init__(self, prefix: str, records: int, *goals: Goal) -> None:
        self.name = f"{prefix}-consume"
        self.title = f"{prefix}: consume 100 B, {PARTITIONS} partitions"
        self.goals = goals
        self._records = records
        self._topics: dict[str, str] = {}

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        topic = f"bench-consume-{next(_numbers)}"
        topics.create(contestant.shared, [topic], PARTITIONS)
        filled = Produce(scale.count(self._records), 100, properties={"linger.ms": "20"})
        librdkafka.produce(contestant.shared, topic, filled)
        self._topics[contestant.name] = topic

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        way = way_of(server)
        before = cpu_s(server)
        topic, records = self._topics[contestant.name], scale.count(self._records)
        done = librdkafka.consume(way, topic, PARTITIONS, records, properties=way.properties)
        return {RATE: done.rate, CPU: cpu_s(server) - before}

    def clean(self, contestant: Contestant) -> None:
        topic = self._topics.pop(contestant.name, None)
        if topic is not None:
            topics.delete(contestant.shared, [topic])


class LoginsRow(Row):
    """Clients that all come at once, as after a restart, while one that was there before goes on sending."""

    name = "logins"
    title = f"{CONNECTIONS} clients log in by mutual TLS and SCRAM-SHA-256, 50 at once"
    goals = (Goal(LOGINS, 1.0), Goal(OTHERS_P99, own=10.0))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        stores = stores_of(server)
        clients = max(50, scale.count(CONNECTIONS))
        ports = stores.ports
        context = stores.client_context()
        with contextlib.closing(_connected(server.host, ports["SSL"], context)) as connection:
            assert isinstance(connection, ssl.SSLSocket)
            check_cipher(connection.cipher())
        with topics.topic(server, 1) as topic:
            before = cpu_s(server)
            with sending_one_by_one(server.host, ports["SSL"], topic, context) as latencies:
                began, ended = log_in_many(server.host, ports["SASL_SSL"], stores.client_pem.parent, clients)
            spent = cpu_s(server) - before
        during = sorted(took for sent_at, took in latencies if began - took <= sent_at <= ended)
        return {LOGINS: ended - began, CPU: spent, OTHERS_P99: during[int(len(during) * 0.99)] * 1000}


class MetadataRow(Row):
    """All topics, told to a user with 200 ACLs, who may see them all by one of them, and to a super user."""

    name = "metadata"
    title = f"Metadata of {MANY_TOPICS:,} topics: a user with 200 ACLs (left), a super user (right)"
    goals = (Goal(ANSWER, 3.0),)
    warms = False

    def __init__(self) -> None:
        self._guarded: Contestant | None = None

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        if self._guarded is None:
            self._guarded = contestant
            names = [f"bench-many-{number}" for number in range(scale.count(MANY_TOPICS))]
            topics.create(contestant.shared, names, 1)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        assert self._guarded is not None
        server = self._guarded.shared
        who = (USER, SECRET) if contestant is self._guarded else (SUPER_USER, BROKER_SECRET)
        before = cpu_s(server)
        port = stores_of(server).ports["SASL_PLAINTEXT"]
        answer_s = run(_ask_for_all(server.host, port, *who, scale.count(MANY_TOPICS)))
        return {ANSWER: answer_s * 1000, CPU: cpu_s(server) - before}

    def clean(self, contestant: Contestant) -> None:
        if contestant is self._guarded:
            # Faster than deleting them: nobody else needs this broker.
            contestant.release()


class IdleRow(Row):
    """What a connection costs that has sent one request: plaintext, and TLS above that."""

    name = "idle-tls"
    title = f"{IDLE} idle connections with TLS, and {IDLE} without"
    goals = (Goal(ABOVE_PLAINTEXT, own=20.0),)
    warms = False

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        if contestant.name == "kafka":
            raise UnavailableError("a JVM's heap is its size from the start")
        with contestant.running() as server, contextlib.ExitStack() as stack:
            stores = stores_of(server)
            context = stores.client_context()
            # The first ones bring what all share.
            for tls in (None, context):
                stack.enter_context(_idle(server, stores.ports["SSL"], FIRST_IDLE, tls))
            sizes = [server.process.rss_bytes()]
            for tls in (None, context):
                stack.enter_context(_idle(server, stores.ports["SSL"], IDLE, tls))
                sizes.append(server.process.rss_bytes())
            plain, secured = ((after - before) / IDLE / KIB for before, after in pairwise(sizes))
            return {ABOVE_PLAINTEXT: secured - plain, PLAINTEXT_IDLE: plain}


@contextlib.contextmanager
def _idle(server: RunningServer, tls_port: int, connections: int, tls: ssl.SSLContext | None) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(connections):
            port = server.port if tls is None else tls_port
            connection = stack.enter_context(contextlib.closing(_connected(server.host, port, tls)))
            connection.sendall(API_VERSIONS_V0)
            connection.recv(65536)
        yield


def _connected(host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
    connection = socket.create_connection((host, port), timeout=30.0)
    if tls is None:
        return connection
    try:
        return tls.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


async def _ask_for_all(host: str, port: int, user: str, password: str, least_topics: int) -> float:
    """Seconds an answer takes."""
    connection = await connect_to(host, port)
    check((await connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code, "SaslHandshake")
    done = await connection.ask(SaslAuthenticateRequest(auth_bytes=plain_message(user, password)), 2)
    check(done.error_code, "SaslAuthenticate")
    shown = await connection.ask(MetadataRequest(topics=None), METADATA_VERSION)
    if len(shown.topics) < least_topics:
        raise LoadFailedError(f"{user} sees {len(shown.topics)} of {least_topics} topics")
    frame = frame_of(MetadataRequest(topics=None), METADATA_VERSION)
    began = time.perf_counter()
    for _ in range(ANSWERS):
        await connection.answer_to(frame)
    took = time.perf_counter() - began
    connection.close()
    return took / ANSWERS


_SAME_CPU: Final = Goal(CPU, 1.05)
BY_ITSELF: Final[tuple[Row, ...]] = (
    ProduceRow("guarded", "100b", _SAME_CPU, times=2.5),
    ProduceRow("guarded", "1000b", _SAME_CPU),
    ProduceRow("guarded", "single", _SAME_CPU),
    ProduceRow("guarded", "inflight1", _SAME_CPU),
    ConsumeRow("guarded", 10_000_000, _SAME_CPU),
    MetadataRow(),
)
"""With ACLs, quotas and SASL (left) against nothing configured (right)."""
AGAINST_KAFKA: Final[tuple[Row, ...]] = (
    ProduceRow("TLS", "100b", Goal(RATE, 1.0), Goal(CPU, 1.1)),
    ProduceRow("TLS", "1000b", Goal(RATE, 1.0), Goal(CPU, 1.1)),
    ProduceRow("TLS", "inflight1", Goal(RATE, 0.9)),
    ConsumeRow("TLS", 6_000_000, Goal(RATE, 0.9)),
    LoginsRow(),
    IdleRow(),
)
