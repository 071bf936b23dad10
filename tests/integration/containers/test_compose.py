"""The image and docker-compose.yml, built and run: three brokers that survive one's death and stop when they are told.

Run by `make containers` alone: it takes minutes, the ports 9092 to 9094 and a container engine.
"""

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.support.containers import Compose

BROKERS = ("broker-1", "broker-2", "broker-3")
BOOTSTRAP = "localhost:9092,localhost:9093,localhost:9094"
TIMEOUT_S = 120.0
STOP_LIMIT_S = 20.0

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def containers() -> Iterator[Compose]:
    with Compose() as made:
        made.wait_until_ready(*BROKERS)
        yield made


def produce(first: int, count: int) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    settings = {"bootstrap.servers": BOOTSTRAP, "acks": "all", "enable.idempotence": True}
    producer = Producer({**settings, "message.timeout.ms": int(TIMEOUT_S * 1000)})
    for number in range(first, first + count):
        producer.produce("visits", str(number).encode(), on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


def read(count: int) -> Counter[int]:
    """The first `count` messages, of all partitions."""
    group = f"readers-{time.monotonic_ns()}"
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, "auto.offset.reset": "earliest"})
    found: Counter[int] = Counter()
    deadline_s = time.monotonic() + TIMEOUT_S
    try:
        consumer.subscribe(["visits"])
        while found.total() < count and time.monotonic() < deadline_s:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found[int(message.value() or b"-1")] += 1
    finally:
        consumer.close()
    return found


def test_a_cluster_of_containers_outlives_a_broker_and_stops_when_told(containers: Compose) -> None:
    assert {containers.user_of(each) for each in BROKERS} == {"1000"}, "nobody is root"
    produce(0, 500)

    containers.kill("broker-2")
    produce(500, 500)
    containers.start("broker-2")
    containers.wait_until_ready("broker-2")
    assert read(1000) == Counter(range(1000))

    for broker in BROKERS:
        begun_s = time.monotonic()
        assert containers.stop(broker) == 0, containers.log(broker)[-2000:]
        took_s = time.monotonic() - begun_s
        assert took_s < STOP_LIMIT_S, f"{broker} took {took_s:.1f} s: {containers.log(broker)[-2000:]}"
        assert "stopped" in containers.log(broker).rpartition("stopping signal=SIGTERM")[2]

    for broker in BROKERS:
        containers.start(broker)
    containers.wait_until_ready(*BROKERS)
    assert read(1000) == Counter(range(1000)), "what was acknowledged is in the volumes"
