"""Java clients from 0.8 to today against a real broker process: each produces with its codecs and reads it back."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.java import run_java
from tests.support.other_clients import MESSAGES, PARTITIONS, check_lines, read_back
from tests.support.server import RunningServer

pytestmark = [pytest.mark.java, pytest.mark.slow]
JAVA = Path(__file__).resolve().parents[2] / "java"
FIRST_CODECS = ("none", "gzip", "snappy")
OLD_CODECS = (*FIRST_CODECS, "lz4")
ALL_CODECS = (*OLD_CODECS, "zstd")
PRODUCERS_ONLY = {"clients-0.8.2.2": OLD_CODECS, "clients-0.9.0.1": OLD_CODECS}
"""0.8.2 has no new consumer yet, that of 0.9 asks for a coordinator even to assign partitions."""
CLIENTS = {
    "clients-0.10.2.2": (OLD_CODECS, False),
    "clients-0.11.0.3": (OLD_CODECS, True),
    "clients-1.1.1": (OLD_CODECS, True),
    "clients-2.0.1": (OLD_CODECS, True),
    "clients-2.8.2": (ALL_CODECS, True),
    "kafka-3.9": (ALL_CODECS, True),
    "kafka-4.3": (ALL_CODECS, True),
}


@pytest.mark.parametrize("bundle", CLIENTS)
def test_what_a_java_client_produced_it_reads_back(broker: RunningServer, topic: str, bundle: str) -> None:
    codecs, headers = CLIENTS[bundle]
    _create(broker, topic)
    _produce(broker, topic, bundle, codecs)
    arguments = [broker.bootstrap, topic, str(MESSAGES * len(codecs))]
    lines = run_java(str(JAVA / "EveryConsumer.java"), arguments, bundle=bundle)
    check_lines(lines.splitlines(), codecs, headers=headers)


@pytest.mark.parametrize("bundle", PRODUCERS_ONLY)
def test_what_an_early_java_client_produced_is_there(broker: RunningServer, topic: str, bundle: str) -> None:
    codecs = PRODUCERS_ONLY[bundle]
    _create(broker, topic)
    _produce(broker, topic, bundle, codecs)
    check_lines(read_back(broker, topic, MESSAGES * len(codecs)), codecs, headers=False)


def test_the_scala_clients_of_0_8_produce_and_read(broker: RunningServer, topic: str) -> None:
    """They speak Produce and Fetch v0: message format 0, both ways."""
    _create(broker, topic)
    arguments = [broker.host, str(broker.port), topic, str(MESSAGES), ",".join(FIRST_CODECS)]
    lines = run_java(str(JAVA / "ScalaClient.java"), arguments, bundle="kafka-0.8")
    check_lines(lines.splitlines(), FIRST_CODECS, headers=False)


def _create(broker: RunningServer, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)


def _produce(broker: RunningServer, topic: str, bundle: str, codecs: tuple[str, ...]) -> None:
    arguments = [broker.bootstrap, topic, str(MESSAGES), ",".join(codecs)]
    run_java(str(JAVA / "EveryProducer.java"), arguments, bundle=bundle, timeout_s=60)
