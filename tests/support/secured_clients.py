"""Clients of every library that enter by a secure listener, produce one record and read it back."""

import asyncio
import os
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka.cimpl import TopicPartition as RdPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokenProvider

from kavka.client import Consumer, Producer, TopicPartition
from kavka.client.security.bearer.token import unsecured_token
from tests.support import maven
from tests.support.java_programs import java_command
from tests.support.java_tools import JavaTools
from tests.support.other_clients import go_client, node_client, run_client
from tests.support.secure_listeners import USER, SecureListeners

TIMEOUT_S: Final = 60.0
Way = tuple[str, str | None]
"""The listener's protocol, and the mechanism."""
RoundTrip = Callable[[SecureListeners, Way, str, str, Path], bytes | None]
"""Takes the listeners, the way in, a topic of one partition, the password, and a directory: the value that was read."""
VALUE: Final = b"value"


def kavkas_own(secure: SecureListeners, way: Way, topic: str, secret: str, _directory: Path) -> bytes | None:
    settings = secure.client(*way, secret=secret)
    with Producer(settings) as producer:
        producer.send(topic, VALUE, partition=0).result(TIMEOUT_S)
    with Consumer(settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        (record,) = consumer.poll(TIMEOUT_S * 1000)
        value: bytes | None = record.value
        return value


def confluent(secure: SecureListeners, way: Way, topic: str, secret: str, _directory: Path) -> bytes | None:
    protocol, mechanism = way
    settings: dict[str, Any] = {
        "bootstrap.servers": f"{secure.host}:{secure.ports[protocol]}",
        "security.protocol": protocol,
        "ssl.ca.location": str(secure.authority_pem),
    }
    if mechanism == "OAUTHBEARER":
        unsecured = {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={USER}"}
        settings |= {"sasl.mechanisms": mechanism, **unsecured}
    elif mechanism is not None:
        settings |= {"sasl.mechanisms": mechanism, "sasl.username": USER, "sasl.password": secret}
    producer = RdProducer(settings)
    producer.produce(topic, VALUE, partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = RdConsumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([RdPartition(topic, 0, 0)])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None
    value: bytes | None = message.value()
    return value


class _Token(AioTokenProvider):  # type: ignore[misc]  # the library has no types
    async def token(self) -> str:
        return _token()


class _PlainToken(PythonTokenProvider):  # type: ignore[misc]  # the library has no types
    def token(self) -> str:
        return _token()


def _token() -> str:
    return unsecured_token({"unsecuredLoginStringClaim_sub": USER}, time.time() * 1000).text


def _python(secure: SecureListeners, way: Way, secret: str) -> dict[str, Any]:
    protocol, mechanism = way
    address = f"{secure.host}:{secure.ports[protocol]}"
    settings: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": protocol}
    if protocol.endswith("SSL"):
        settings["ssl_context"] = ssl.create_default_context(cafile=str(secure.authority_pem))
    if mechanism is None:
        return settings
    settings["sasl_mechanism"] = mechanism
    if mechanism != "OAUTHBEARER":
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": secret}
    return settings


def kafka_python(secure: SecureListeners, way: Way, topic: str, secret: str, _directory: Path) -> bytes | None:
    settings = _python(secure, way, secret)
    if way[1] == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = _PlainToken()
    producer = KafkaProducer(**settings)
    producer.send(topic, VALUE, partition=0).get(TIMEOUT_S)
    producer.close(5)
    consumer = KafkaConsumer(**settings, consumer_timeout_ms=TIMEOUT_S * 1000)
    consumer.assign([PythonPartition(topic, 0)])
    consumer.seek_to_beginning()
    value: bytes | None = next(consumer).value
    consumer.close()
    return value


def aiokafka(secure: SecureListeners, way: Way, topic: str, secret: str, _directory: Path) -> bytes | None:
    async def round_trip() -> bytes | None:
        settings = _python(secure, way, secret)
        if way[1] == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = _Token()
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, VALUE, partition=0)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            value: bytes | None = (await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value
            return value

    return asyncio.run(round_trip())


def java(bundle: str) -> RoundTrip:
    """Kafka's performance tools of that release: they produce, and read as many."""

    def round_trip(secure: SecureListeners, way: Way, topic: str, secret: str, directory: Path) -> bytes | None:
        path = _properties(secure, way, secret, directory)
        many = ("--num-records", "1", "--record-size", str(len(VALUE)), "--throughput", "-1")
        with JavaTools(bundle) as tools:
            tools.run("org.apache.kafka.tools.ProducerPerformance", "--topic", topic, *many, "--producer.config", path)
            read = tools.run(
                "org.apache.kafka.tools.ConsumerPerformance",
                *("--bootstrap-server", f"{secure.host}:{secure.ports[way[0]]}", "--topic", topic, "--messages", "1"),
                *("--consumer.config", path, "--timeout", str(int(TIMEOUT_S * 1000)), "--hide-header"),
            )
        return VALUE if read.split(", ")[4].strip() == "1" else None

    return round_trip


def old_java(version: str) -> RoundTrip:
    """A release of Kafka's clients alone, which has no tools (tests/java/SaslRoundTrip.java)."""

    def round_trip(secure: SecureListeners, way: Way, topic: str, secret: str, directory: Path) -> bytes | None:
        path = _properties(secure, way, secret, directory)
        command = java_command("SaslRoundTrip", path, topic, 1, bundle=f"clients-{version}")
        if way[1] == "OAUTHBEARER":
            # Programs bring what it makes tokens with.
            maven.classpath("kafka-3.9")
            jackson = sorted(map(str, (maven.JARS / "kafka-3.9").glob("jackson-*.jar")))
            place = command.index("-cp") + 1
            command[place] = os.pathsep.join([command[place], *jackson])
        (told,) = run_client(command)
        return VALUE if told == "records: 1" else told.encode()

    return round_trip


def _properties(secure: SecureListeners, way: Way, secret: str, directory: Path) -> Path:
    path = directory / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in secure.client(*way, secret=secret).items()))
    return path


def other(command: Callable[[], Sequence[str | Path]]) -> RoundTrip:
    """A program of tests/clients, in another language. Skips where that is not installed."""

    def round_trip(secure: SecureListeners, way: Way, topic: str, secret: str, _directory: Path) -> bytes | None:
        protocol, mechanism = way
        address = f"{secure.host}:{secure.ports[protocol]}"
        authority = secure.authority_pem if protocol.endswith("SSL") else "-"
        known = _token() if mechanism == "OAUTHBEARER" else secret
        (value,) = run_client(command(), address, topic, authority, mechanism or "-", USER, known)
        return value.encode()

    return round_trip


CLIENTS: Final[dict[str, RoundTrip]] = {
    "kavka": kavkas_own,
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "franz-go": other(lambda: [go_client("securefranz")]),
    "sarama": other(lambda: [go_client("securesarama")]),
    "kafkajs": other(lambda: node_client("secure")),
    "java-0.11": old_java("0.11.0.3"),
    "java-1.1": old_java("1.1.1"),
    "java-2.0": old_java("2.0.1"),
    "java-2.8": old_java("2.8.2"),
    "java-3.9": java("kafka-3.9"),
    "java-4.3": java("kafka-4.3"),
}
"""By name."""
UNABLE: Final[dict[str, frozenset[str]]] = {
    # It came with 2.0; and their SCRAM asks for classes that today's Java has no more.
    "java-0.11": frozenset({"OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"}),
    "java-1.1": frozenset({"OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"}),
    "java-2.0": frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"}),
}
"""Mechanisms that a client has not, or not where it runs now."""
REFUSALS: Final = {
    "franz-go": "SASL_AUTHENTICATION_FAILED",
    "sarama": "SASL Authentication failed",
    "kafkajs": "authentication failed",
}
"""What programs in other languages say of a wrong password."""
