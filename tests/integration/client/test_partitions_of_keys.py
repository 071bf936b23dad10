"""Ten thousand random keys lie in the partitions in which Java's client and librdkafka put them."""

import base64
import random
import subprocess

import pytest
from confluent_kafka import Message
from confluent_kafka import Producer as ConfluentProducer

from kavka.client.producer.partitioners import MURMUR2, PARTITIONERS, KeyHash
from tests.integration.client.test_producer import create
from tests.support.client_brokers import KAVKA
from tests.support.java_programs import java_command
from tests.support.server import RunningServer

KEYS = 10_000
PARTITIONS = 13


def random_keys(seed: int) -> list[bytes]:
    dice = random.Random(seed)
    return [dice.randbytes(dice.randint(1, 80)) for _ in range(KEYS)]


def ours(hashing: KeyHash, keys: list[bytes]) -> list[int]:
    return [hashing.hash_of(key) % PARTITIONS for key in keys]


@pytest.mark.java
def test_javas_producer_chooses_the_same() -> None:
    keys = [b"", *random_keys(1)]
    lines = "".join(f"{base64.b64encode(key).decode()} {PARTITIONS}\n" for key in keys)
    done = subprocess.run(
        java_command("PartitionOracle"), input=lines, capture_output=True, text=True, timeout=180, check=True
    )
    assert [int(line) for line in done.stdout.split()] == ours(MURMUR2, keys)


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
@pytest.mark.parametrize("name", ["murmur2_random", "consistent", "consistent_random"])
def test_librdkafka_chooses_the_same(broker: RunningServer, topic: str, name: str) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    hashing = PARTITIONERS[name]
    assert isinstance(hashing, KeyHash)
    keys = random_keys(2)
    found: dict[bytes | None, int | None] = {}

    def note(_: object, message: Message) -> None:
        found[message.key()] = message.partition()

    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap, "partitioner": name})
    for key in keys:
        producer.produce(topic, b"", key, on_delivery=note)
    assert producer.flush(60) == 0
    assert [found[key] for key in keys] == ours(hashing, keys)
