"""Produce requests of clients with quotas: throttled as if each was told to a meter at once."""

import random
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka.broker.metrics.registry import Metrics
from kavka.broker.quotas.account import Account
from kavka.broker.quotas.limits import Tags
from kavka.broker.quotas.meters import Meter
from kavka.broker.quotas.samples import Window
from kavka.broker.quotas.tally import DELAY_MS, NS_PER_MS
from kavka.broker.requests.charged_produce import TIMED, ChargedProduces, Throttled

WINDOW = Window(11, 1000)
TAGS = Tags("user", "client")
START_MS = 1_700_000_000_000
FAR = 1e12
COST_NS = 10_000
CELLS = Metrics().mine()


class Appended:
    """Stands for the shapes: each request is appended, and takes its thread as long."""

    def __init__(self) -> None:
        self.thread_ns = 0
        self.answer: bytes | None = b"answer"

    def run(self, frame: memoryview, cells: object, may_wait: bool) -> bytes | None:
        self.thread_ns += COST_NS
        return self.answer


class Producer:
    """One connection. `now_ms` is the clock of all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, produce: Meter | None, request: Meter | None) -> None:
        self.now_ms = START_MS
        self.shapes = Appended()
        self.timed = 0
        monkeypatch.setattr(time, "thread_time_ns", self._thread_time_ns)
        charge: Any = SimpleNamespace(
            account=Account(produce, None, request, None), now_ns=lambda: self.now_ms * NS_PER_MS
        )
        context: Any = SimpleNamespace(client_id="c")
        self._charged = ChargedProduces(cast(Any, self.shapes), context, charge)

    def _thread_time_ns(self) -> int:
        self.timed += 1
        return self.shapes.thread_ns

    def send(self, size_bytes: int = 100) -> int:
        """For how long it is to pause (ms)."""
        answer = self._charged.run(memoryview(bytes(size_bytes)), CELLS, True)
        return answer._throttle_ms if isinstance(answer, Throttled) else 0


def meter_of(limit: float) -> Meter:
    return Meter(TAGS, WINDOW, limit, START_MS)


def test_a_client_pauses_as_if_each_request_was_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(13)
    for times in (None, meter_of(FAR)):
        throttled = 0
        for _ in range(10):
            limit = dice.choice([10_000.0, 1_000_000.0])
            sizes, exact = meter_of(limit), meter_of(limit)
            producer = Producer(monkeypatch, sizes, times)
            for step in range(2000):
                if step % 300 == 0:
                    largest = int(limit / dice.choice([15, 25, 300]))
                producer.now_ms += dice.choice([0, 0, 0, 1, 5, 40])
                size = dice.randrange(1, largest)
                told_ms = producer.send(size)
                assert told_ms == exact.record(size, producer.now_ms)
                throttled += told_ms > 0
            assert sizes.measure(producer.now_ms) == exact.measure(producer.now_ms)
        assert throttled


def test_time_is_counted_for_those_that_were_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, exact = meter_of(FAR), meter_of(FAR)
    producer = Producer(monkeypatch, None, meter)
    for _ in range(20 * TIMED):
        assert producer.send() == 0
        exact.record(COST_NS / 10_000_000, producer.now_ms)
    # The last one tells of those before it.
    producer.now_ms += DELAY_MS
    producer.send()
    exact.record(COST_NS / 10_000_000, producer.now_ms)

    assert producer.timed < 2 * 100
    assert meter.measure(producer.now_ms) == pytest.approx(exact.measure(producer.now_ms))


@pytest.mark.parametrize("limit", [1.7e308, 1e305, 5e-324, 0.0, -1e-320])
def test_whatever_a_quota_is_requests_are_answered(monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
    producer = Producer(monkeypatch, meter_of(limit), meter_of(limit))
    pauses = []
    for _ in range(3 * TIMED):
        pauses.append(producer.send())
        producer.now_ms += 1

    assert limit < 1 or not any(pauses)


def test_a_slow_producer_is_timed_as_often_as_it_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, exact = meter_of(FAR), meter_of(FAR)
    producer = Producer(monkeypatch, None, meter)
    for _ in range(20):
        producer.now_ms += DELAY_MS
        producer.send()
        exact.record(COST_NS / 10_000_000, producer.now_ms)

    assert producer.timed == 2 * 20
    assert meter.measure(producer.now_ms) == pytest.approx(exact.measure(producer.now_ms))


def test_a_quota_of_time_that_is_near_counts_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    # A hundred requests' time in the window.
    limit = 100 * COST_NS / 10_000_000 / 10
    meter, exact = meter_of(limit), meter_of(limit)
    producer = Producer(monkeypatch, meter_of(FAR), meter)
    pauses = [(producer.send(), exact.record(COST_NS / 10_000_000, START_MS)) for _ in range(150)]

    assert [told for told, _ in pauses] == [min(right, WINDOW.sample_ms) for _, right in pauses]
    assert pauses[-1][0] > 0


def test_who_wants_no_answer_is_charged_for_bytes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, times = meter_of(FAR), meter_of(FAR)
    producer = Producer(monkeypatch, sizes, times)
    producer.shapes.answer = b""
    for _ in range(2 * TIMED):
        producer.send(100)

    assert times.measure(START_MS) == 0
    assert sizes.measure(START_MS) * 10 == 2 * TIMED * 100


def test_what_takes_the_ordinary_way_is_charged_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, times = meter_of(FAR), meter_of(FAR)
    producer = Producer(monkeypatch, sizes, times)
    producer.send(100)
    producer.shapes.answer = None
    for _ in range(10):
        producer.send(100)

    assert sizes.measure(START_MS) * 10 == 100
