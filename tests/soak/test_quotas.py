"""The same clients under the same quotas at Kavka and at Apache Kafka 3.9: as fast, and told to pause for as long."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.quota_client import QuotaClient
from tests.support.server import RunningServer
from tests.support.wire import batch_of, fetch_request, produce_request

pytestmark = pytest.mark.soak

SECONDS = min(60.0, float(os.environ.get("SOAK_SECONDS", "30")))
TOPIC = "pages"
BATCH_BYTES = 20_000
RATE = 200_000.0
SETTINGS = {"quota.window.num": "4", "controller.quota.window.num": "4"}


class Pace(NamedTuple):
    """What a client has got done under a quota."""

    a_second: float
    throttled: list[int]
    """The throttle times (ms) that were not 0."""
    took_ms: float
    """How long a request took before which nobody had to pause."""

    @property
    def period_ms(self) -> float:
        """From one answer to the next: who takes longer for it tells of a shorter pause.

        Not the mean: some pauses are ten times as long as most, and how many come before the end is chance.
        """
        return statistics.median(self.throttled) + self.took_ms


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    directory = tmp_path_factory.mktemp("quotas")
    with (
        ZooKeeperKafka(directory / "kafka", SETTINGS) as kafka,
        KavkaProcess(directory / "kavka", SETTINGS) as kavka,
    ):
        for server in (kafka, kavka):
            with QuotaClient(server.host, server.port) as client:
                client.create_topic(TOPIC)
        yield [kafka, kavka]


def at_each(servers: list[RunningServer], client_id: str, quota: str, rate: float, run: Callable[..., Pace]) -> Any:
    """The same at both, with a quota of the client's own: Kafka's pace, and Kavka's."""
    paces = []
    for server in servers:
        with QuotaClient(server.host, server.port, client_id="operator") as operator:
            assert operator.change({"client-id": client_id}, {quota: rate})[0] == 0
        with QuotaClient(server.host, server.port, client_id=client_id, timeout_s=120) as client:
            paces.append(run(client))
    return paces


def paced(step: Callable[[], tuple[float, int]]) -> Pace:
    """Take steps, each of which says how much it got done and its throttle time, for the soak's time."""
    amount, throttled, took_ms, began_s = 0.0, [0], [], time.monotonic()
    while time.monotonic() - began_s < SECONDS:
        asked_s = time.monotonic()
        done, throttle_ms = step()
        amount += done
        if not throttled[-1]:
            took_ms.append((time.monotonic() - asked_s) * 1000)
        throttled.append(throttle_ms)
    rate = amount / (time.monotonic() - began_s)
    return Pace(rate, [each for each in throttled if each], statistics.median(took_ms))


def assert_alike(kavka: Pace, kafka: Pace) -> None:
    assert kavka.a_second == pytest.approx(kafka.a_second, rel=0.1)
    assert kavka.period_ms == pytest.approx(kafka.period_ms, rel=0.1)


def test_producers_are_as_fast_as_kafkas(servers: list[RunningServer]) -> None:
    batch = batch_of([b"v" * BATCH_BYTES], timestamp_ms=time.time_ns() // 1_000_000)

    def run(client: QuotaClient) -> Pace:
        return paced(lambda: (BATCH_BYTES, client.ask(produce_request(TOPIC, batch), 9).throttle_time_ms))

    kafka, kavka = at_each(servers, "producer", "producer_byte_rate", RATE, run)
    print(f"produce kafka={kafka.a_second:.0f} kavka={kavka.a_second:.0f} B/s", kafka, kavka)
    assert_alike(kavka, kafka)


def test_consumers_are_as_fast_as_kafkas(servers: list[RunningServer]) -> None:
    batch = batch_of([b"v" * BATCH_BYTES], timestamp_ms=time.time_ns() // 1_000_000)
    for server in servers:
        with QuotaClient(server.host, server.port) as client:
            for _ in range(10):
                client.ask(produce_request(TOPIC, batch), 9)

    def run(client: QuotaClient) -> Pace:
        def step() -> tuple[float, int]:
            answer = client.ask(fetch_request(TOPIC, 0, max_bytes=BATCH_BYTES), 11)
            size = sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)
            return size, answer.throttle_time_ms

        return paced(step)

    kafka, kavka = at_each(servers, "consumer", "consumer_byte_rate", RATE, run)
    print(f"fetch kafka={kafka.a_second:.0f} kavka={kavka.a_second:.0f} B/s", kafka, kavka)
    assert_alike(kavka, kafka)


def test_partitions_are_made_as_fast_as_at_kafkas(servers: list[RunningServer], tmp_path: Path) -> None:
    numbers = iter(range(10_000))

    def run(client: QuotaClient) -> Pace:
        def step() -> tuple[float, int]:
            name = f"{tmp_path.name}-{next(numbers)}"
            new = CreatableTopic(name=name, num_partitions=3, replication_factor=1, assignments=[], configs=[])
            answer = client.ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 7)
            return 3 * (answer.topics[0].error_code == 0), answer.throttle_time_ms

        return paced(step)

    kafka, kavka = at_each(servers, "operator-of-topics", "controller_mutation_rate", 2, run)
    print(f"create kafka={kafka.a_second:.2f} kavka={kavka.a_second:.2f} a second", kafka, kavka)
    assert_alike(kavka, kafka)
