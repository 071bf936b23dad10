"""Connections that count for themselves while a quota is far off: the same comes of it as where each tells at once."""

import random

import pytest

from kavka.broker.quotas.limits import UNLIMITED, Tags
from kavka.broker.quotas.meters import FEW_TALLIES, Meter
from kavka.broker.quotas.samples import Window
from kavka.broker.quotas.tally import DELAY_MS, Tally

WINDOW = Window(11, 1000)
TAGS = Tags("user", "client")
START_MS = 1_700_000_000_000


class Client:
    """What a connection does with its tally: see `ChargedProduces`."""

    def __init__(self, meter: Meter) -> None:
        self.tally = Tally()
        self._meter = meter
        self.told = 0

    def use(self, value: float, now_ms: int) -> int:
        used = self.tally.used + value
        if used < self.tally.most and now_ms < self.tally.due_ms:
            self.tally.used, self.tally.used_ns = used, now_ms * 1_000_000
            return 0
        self.told += 1
        return self._meter.tell(self.tally, value, now_ms)


def meter_of(limit: float) -> Meter:
    return Meter(TAGS, WINDOW, limit, START_MS)


def test_the_meter_knows_at_once_what_it_was_not_told_when_it_is_asked() -> None:
    meter, exact = meter_of(1e9), meter_of(1e9)
    client = Client(meter)
    for _ in range(100):
        client.use(10, START_MS)
        exact.record(10, START_MS)

    assert client.told == 1
    assert meter.measure(START_MS + 2000) == exact.measure(START_MS + 2000) > 0


def test_a_connection_tells_after_a_while() -> None:
    client = Client(meter_of(1e9))
    for now_ms in range(START_MS, START_MS + 10 * DELAY_MS):
        client.use(1, now_ms)

    assert client.told == 10


def test_what_was_used_longer_ago_than_is_looked_back_counts_no_more() -> None:
    meter = meter_of(1e9)
    client = Client(meter)
    client.use(1, START_MS)
    client.use(1000, START_MS)
    later_ms = START_MS + WINDOW.expire_ms + WINDOW.sample_ms + DELAY_MS

    assert meter.measure(later_ms) == 0


@pytest.mark.parametrize("clients", [1, 7, 300])
def test_throttle_times_are_those_of_a_meter_that_everybody_tells_at_once(clients: int) -> None:
    dice = random.Random(clients)
    for _ in range(20):
        limit = dice.choice([10_000.0, 1_000_000.0])
        meter, exact = meter_of(limit), meter_of(limit)
        users = [Client(meter) for _ in range(clients)]
        now_ms, throttled = START_MS, 0
        for step in range(4000):
            if step % 500 == 0:
                largest = limit / dice.choice([15, 25, 300])
            now_ms += dice.choice([0, 1, 5, 20, 40])
            # Sums of whole numbers are the same in any order.
            size = dice.randrange(int(largest))
            told_ms, right_ms = dice.choice(users).use(size, now_ms), exact.record(size, now_ms)
            throttled += right_ms > 0
            assert told_ms == right_ms
        assert throttled
        assert meter.measure(now_ms) == exact.measure(now_ms)


def test_a_new_limit_counts_for_the_next_request() -> None:
    meter = meter_of(UNLIMITED)
    client = Client(meter)
    for _ in range(10):
        assert client.use(1000, START_MS) == 0
    meter.limit = 100

    assert client.use(1000, START_MS) > 0
    assert meter.measure(START_MS) == pytest.approx(1100)


def test_a_burst_of_many_connections_is_noticed_before_it_is_too_much() -> None:
    """All at one moment: each has a share to itself, and all shares together are no reason to pause."""
    meter, exact = meter_of(1000), meter_of(1000)
    users = [Client(meter) for _ in range(500)]
    for user in users:
        user.use(1, START_MS)
        exact.record(1, START_MS)
    while not any([user.use(1, START_MS) for user in users]):
        assert not any([exact.record(1, START_MS) for _ in users])


def test_connections_that_have_gone_are_forgotten() -> None:
    meter = meter_of(1e9)
    for number in range(50 * FEW_TALLIES):
        Client(meter).use(1, START_MS + number * DELAY_MS)

    assert len(meter._tallies) <= 2 * FEW_TALLIES
