"""Who sends one record after the other writes it himself, while the client's thread sleeps: one thread less to wake."""

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import ClientDiedError, KafkaTimeoutError, UnsupportedVersionError
from kavka.client.errors import AnswerTimeoutError
from kavka.client.producer.accumulator import AccumulatorSettings
from kavka.client.producer.sender import Sender
from kavka.protocol.api import ApiKey
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.component.client.producer.simulated_cluster import SimulatedCluster
from tests.component.client.producer.simulated_producer import SimulatedProducer, dice_of
from tests.support.answering_broker import AnsweringBroker
from tests.support.processes import wait_until
from tests.support.scripted_broker import Asked

TIMEOUT_S = 120.0
RECORDS = 20
PATIENT: dict[str, Any] = {"request_timeout_ms": 600_000, "delivery_timeout_ms": 1_200_000}
"""Of those whose thread wakes, while nothing happens, less often than any machine takes for a test: every 150 s."""
TOO_LATE = (KafkaTimeoutError, AnswerTimeoutError)
"""What a record fails with whose time is over, and what with if its request's time was over at the same look."""
MOST_CALLS = 125
"""Functions of Python and C on the way of one record from `send` to its being written."""


class Served:
    """A producer, its broker, and which answers this does not give."""

    def __init__(self, **settings: Any) -> None:
        self.silent: set[int] = set()
        serving = ProducersBroker()
        self.broker = AnsweringBroker(serving.answers, self._mangle)
        self.broker.__enter__()
        serving.node = self.broker.node
        self.producer = Producer(bootstrap_servers=self.broker.bootstrap, **{"linger_ms": 0, **settings})
        self.wakeups = 0
        network = self.producer._thread._network
        wakeup = network.wakeup

        def counted() -> None:
            self.wakeups += 1
            wakeup()

        network.__dict__["wakeup"] = counted
        self.producer._accumulator.__dict__["_wake"] = counted

    def _mangle(self, asked: Asked, frame: bytes) -> bytes:
        return b"" if asked.header.api_key in self.silent else frame

    def asleep(self) -> None:
        """Wait until the client's thread sleeps, as it does when nothing is on its way."""
        turn = self.producer._thread._turn
        assert turn is not None
        wait_until(lambda: not turn.locked(), TIMEOUT_S, "it never sleeps")

    def send(self) -> int:
        return self.producer.send(TOPIC, b"kavka").result(TIMEOUT_S).offset

    def close(self) -> None:
        self.producer.close(1_000)
        self.broker.__exit__(None, None, None)


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    made = Served(**getattr(request, "param", {}))
    yield made
    made.close()


@pytest.mark.parametrize("served", [PATIENT, {**PATIENT, "max_in_flight_requests_per_connection": 1}], indirect=True)
def test_the_thread_is_not_woken_for_a_record_alone(served: Served) -> None:
    first = served.send()
    served.wakeups = 0
    for number in range(1, RECORDS + 1):
        served.asleep()
        assert served.send() == first + number
    assert served.wakeups == 0


@pytest.mark.parametrize("served", [{**PATIENT, "linger_ms": 600_000}], indirect=True)
def test_nor_is_it_for_a_flush_of_one(served: Served) -> None:
    served.producer.send(TOPIC, b"first")
    served.producer.flush()
    for _ in range(RECORDS):
        served.asleep()
        future = served.producer.send(TOPIC, b"kavka")
        served.asleep()
        served.wakeups = 0
        served.producer.flush()
        assert future.done()
        assert served.wakeups == 0


@pytest.mark.parametrize("served", [{"acks": "0"}, {"transactional_id": "t"}], indirect=True, ids=str)
def test_what_needs_the_thread_is_left_to_it(served: Served) -> None:
    producer = served.producer
    if producer._transactions is not None:
        producer.init_transactions()
        producer.begin_transaction()
        assert producer._thread._turn is None
    for _ in range(3):
        served.send()
    assert served.wakeups >= 3


@pytest.mark.parametrize("served", [{"request_timeout_ms": 300, "delivery_timeout_ms": 600}], indirect=True)
def test_an_answer_that_does_not_come_is_missed_in_time(served: Served) -> None:
    """The thread sleeps meanwhile, and does not know of the request."""

    def is_connected() -> bool:
        # A busy machine may take longer for the first than these limits allow.
        with suppress(*TOO_LATE):
            return served.send() >= 0
        return False

    wait_until(is_connected, TIMEOUT_S, "nothing is sent")
    served.asleep()
    served.silent.add(ApiKey.PRODUCE)
    future = served.producer.send(TOPIC, b"kavka")
    wait_until(future.done, TIMEOUT_S, "it is not missed")
    with pytest.raises(TOO_LATE):
        future.result(0)


@pytest.mark.parametrize("served", [{"request_timeout_ms": 0, "delivery_timeout_ms": 600_000}], indirect=True)
def test_a_thread_that_others_stand_in_for_sleeps_nevertheless(served: Served) -> None:
    assert served.producer._thread._longest_sleep_ms >= 10


@pytest.mark.parametrize("served", [{"request_timeout_ms": 60_000}], indirect=True)
def test_many_threads_send_each_once(served: Served) -> None:
    served.send()
    offsets: list[int] = []

    def run() -> None:
        offsets.extend(served.send() for _ in range(50))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(offsets) == 200
    assert not served.producer._accumulator.incomplete
    assert served.producer.metrics["record-send-total"] == 201


def test_an_error_of_ours_ends_the_client_and_not_the_program(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.send()
    served.asleep()

    def failing(*_arguments: Any) -> bool:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(Sender, "send_at_once", failing)
    with pytest.raises(ZeroDivisionError):
        served.producer.send(TOPIC, b"kavka")
    wait_until(lambda: served.producer._thread.failure is not None, TIMEOUT_S, "it goes on")
    with pytest.raises(ClientDiedError, match="a mistake"):
        served.producer.send(TOPIC, b"kavka")


def simulated(**settings: Any) -> SimulatedProducer:
    producer = SimulatedProducer(
        SimulatedCluster(dice_of(1), nodes=1, partitions=1), accumulator=AccumulatorSettings(linger_ms=0, **settings)
    )
    producer.send(0)
    producer.finish()
    producer.accumulator.calm()
    producer.woken = 0
    return producer


def test_a_broker_that_is_not_ready_is_left_to_the_thread() -> None:
    producer = simulated()
    producer.cluster.not_ready.add(0)
    producer.send(0)
    assert producer.woken == 1
    producer.cluster.not_ready.clear()
    producer.finish()
    producer.check_callbacks()
    producer.check_order()


def test_what_cannot_be_sent_fails_on_the_thread() -> None:
    producer = simulated()
    served = producer.cluster.ranges.pop(ApiKey.PRODUCE)
    value = producer.send(0)
    assert producer.woken == 1
    assert producer.outcomes[value] == [], "callbacks are the thread's"
    producer.step()
    ((_, error),) = producer.outcomes[value]
    assert isinstance(error, UnsupportedVersionError)
    assert producer.metrics.in_flight == 0
    producer.cluster.ranges[ApiKey.PRODUCE] = served
    producer.send(0)
    producer.finish()
    producer.check_order()


def test_the_way_of_one_record_stays_short() -> None:
    producer = simulated()
    topic = producer.accumulator.topics["birds"]
    counts = {"call": 0, "c_call": 0}

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    def send(*_arguments: Any, **_options: Any) -> None:
        """The network's part is counted elsewhere."""

    producer.cluster.__dict__["send"] = send
    sys.setprofile(note)
    try:
        producer.accumulator.append(topic, topic.queues[0], 1, None, b"kavka", (), None, 0.0)
    finally:
        sys.setprofile(None)
    assert producer.woken == 0
    assert sum(counts.values()) <= MOST_CALLS
