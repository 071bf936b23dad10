"""Clients log in by each mechanism they know, produce and read back; with a wrong secret they say that it is that."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import KafkaError, KafkaException, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from tests.support.java import run_java
from tests.support.processes import wait_until
from tests.support.sasl_broker import (
    PLAIN_PASSWORD,
    PLAIN_USER,
    SCRAM_PASSWORD,
    SCRAM_USER,
    SaslBroker,
    jaas,
)

MECHANISMS = {
    "PLAIN": (PLAIN_USER, PLAIN_PASSWORD),
    "SCRAM-SHA-256": (SCRAM_USER, SCRAM_PASSWORD),
    "SCRAM-SHA-512": (SCRAM_USER, SCRAM_PASSWORD),
}
JAVA = Path(__file__).resolve().parents[2] / "java"
SECRETS = ("alice's secret", "carol,=secret", "dora-secret", "the encoder's secret")

by_each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    directory = tmp_path_factory.mktemp("sasl")
    settings = {"connections.max.reauth.ms": "3000", "password.encoder.secret": "the encoder's secret"}
    with SaslBroker(directory, settings) as broker:
        broker.add_scram_user()
        yield broker
        log = broker.process.log_text()
    assert not any(secret in log for secret in SECRETS)


def librdkafka(broker: SaslBroker, mechanism: str, password: str = "") -> dict[str, Any]:
    user, right = MECHANISMS[mechanism]
    return {
        "bootstrap.servers": broker.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password or right,
    }


@by_each_mechanism
def test_confluent_kafka_produces_and_reads(broker: SaslBroker, mechanism: str) -> None:
    topic = f"confluent-{mechanism}"
    producer = Producer(librdkafka(broker, mechanism))
    for number in range(100):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**librdkafka(broker, mechanism), "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    while len(values) < 100:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        values.append(message.value())
    consumer.close()

    assert values == [str(number).encode() for number in range(100)]


@by_each_mechanism
def test_confluent_kafka_says_that_a_password_is_wrong(broker: SaslBroker, mechanism: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer({**librdkafka(broker, mechanism, "wrong"), "error_cb": errors.append})
    wait_until(lambda: producer.poll(0.1) is not None and bool(errors), 60, "no error came")

    assert errors[0].code() == KafkaError._AUTHENTICATION
    expected = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert expected in errors[0].str()


def test_users_come_and_go_while_the_broker_runs(broker: SaslBroker) -> None:
    def lets_in(user: str, password: str) -> bool:
        settings = {**librdkafka(broker, "PLAIN"), "sasl.username": user, "sasl.password": password}
        errors: list[KafkaError] = []
        producer = Producer({**settings, "error_cb": errors.append})
        topics: list[object] = []
        wait_until(lambda: _listed(producer, topics) or bool(errors), 60, "neither an answer nor an error")
        return not errors

    assert not lets_in("dora", "dora-secret")
    broker.set_plain_users(dora="dora-secret")
    assert lets_in("dora", "dora-secret")
    assert lets_in(PLAIN_USER, PLAIN_PASSWORD)

    broker.set_plain_users()
    assert not lets_in("dora", "dora-secret")
    assert lets_in(PLAIN_USER, PLAIN_PASSWORD)


def _listed(producer: Producer, topics: list[object]) -> bool:
    producer.poll(0)
    try:
        topics.append(producer.list_topics(timeout=0.5))
    except KafkaException:
        producer.poll(0)
        return False
    return True


def kafka_python(broker: SaslBroker, mechanism: str, password: str = "") -> dict[str, Any]:
    user, right = MECHANISMS[mechanism]
    return {
        "bootstrap_servers": broker.sasl_bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password or right,
    }


@by_each_mechanism
def test_kafka_python_produces_and_reads(broker: SaslBroker, mechanism: str) -> None:
    topic = f"kafka-python-{mechanism}"
    producer = KafkaProducer(**kafka_python(broker, mechanism))
    assert producer.send(topic, b"value", partition=0).get(60).offset == 0
    producer.close(5)
    consumer = KafkaConsumer(**kafka_python(broker, mechanism), consumer_timeout_ms=60_000)
    consumer.assign([PythonPartition(topic, 0)])
    consumer.seek_to_beginning()

    assert next(consumer).value == b"value"
    consumer.close()


def test_kafka_python_does_not_connect_with_a_wrong_password(broker: SaslBroker) -> None:
    """It forgets the error where the end of the connection comes with it."""
    with pytest.raises((SaslAuthenticationFailedError, KafkaTimeoutError)):
        KafkaProducer(**kafka_python(broker, "PLAIN", "wrong"), bootstrap_timeout_ms=500)


@by_each_mechanism
def test_aiokafka_produces_and_reads(broker: SaslBroker, mechanism: str) -> None:
    async def round_trip() -> Any:
        topic = f"aiokafka-{mechanism}"
        config = kafka_python(broker, mechanism)
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait(topic, b"value", partition=0)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **config) as consumer:
            return (await asyncio.wait_for(consumer.getone(), 60)).value

    assert asyncio.run(round_trip()) == b"value"


def test_aiokafka_does_not_connect_with_a_wrong_password(broker: SaslBroker) -> None:
    async def connect() -> None:
        producer = AIOKafkaProducer(**kafka_python(broker, "SCRAM-SHA-256", "wrong"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaConnectionError):
        asyncio.run(connect())


def java_round_trip(
    broker: SaslBroker, directory: Path, bundle: str, mechanism: str, count: int, password: str = ""
) -> str:
    user, right = MECHANISMS[mechanism]
    text = jaas(mechanism, user, password or right).replace("\\", "\\\\")
    properties = directory / "client.properties"
    properties.write_text(
        f"bootstrap.servers={broker.sasl_bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={text}\nretries=0\n"
    )
    topic = f"java-{mechanism}"
    return run_java(str(JAVA / "SaslRoundTrip.java"), [properties, topic, str(count)], bundle=bundle).strip()


@pytest.mark.java
def test_the_java_client_authenticates_again_while_it_works(broker: SaslBroker, tmp_path: Path) -> None:
    """For longer than its session lasts, by a mechanism of two steps: no request is lost."""
    told = java_round_trip(broker, tmp_path, "kafka-3.9", "SCRAM-SHA-512", 45)

    assert told == "records: 45"


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("bundle", "mechanism"),
    [
        # Their SCRAM asks for classes that today's Java has no more.
        *((bundle, "PLAIN") for bundle in ("clients-0.10.2.2", "clients-0.11.0.3", "clients-1.1.1")),
        *((bundle, each) for bundle in ("clients-2.8.2", "kafka-3.9", "kafka-4.3") for each in MECHANISMS),
    ],
)
def test_java_clients_of_every_age_produce_and_read(
    broker: SaslBroker, tmp_path: Path, bundle: str, mechanism: str
) -> None:
    assert java_round_trip(broker, tmp_path, bundle, mechanism, 1) == "records: 1"


@pytest.mark.java
def test_an_old_java_client_sends_raw_tokens(broker: SaslBroker, tmp_path: Path) -> None:
    """0.11 knows SaslHandshake v0 alone."""
    assert java_round_trip(broker, tmp_path, "clients-0.11.0.3", "PLAIN", 1) == "records: 1"


@pytest.mark.java
@pytest.mark.soak
def test_the_java_client_says_that_a_password_is_wrong(broker: SaslBroker, tmp_path: Path) -> None:
    told = java_round_trip(broker, tmp_path, "kafka-3.9", "PLAIN", 1, "wrong")
    assert told == "SaslAuthenticationException: Authentication failed: Invalid username or password"
