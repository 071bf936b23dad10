"""The time of produce requests on their short way: timed now and then, and charged in full whatever a client does."""

import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.quotas.account import Account
from kavka.broker.quotas.limits import Tags
from kavka.broker.quotas.meters import Meter
from kavka.broker.quotas.samples import Window
from kavka.broker.quotas.tally import DELAY_MS, NS_PER_MS
from kavka.broker.requests import charged_produce
from kavka.broker.requests.charged_produce import TIMED, ChargedProduces

WINDOW = Window(11, 1000)
START_MS = 1_700_000_000_000
MS_IN_PERCENT = 10
REQUESTS = 15_000
PACE_NS = 100_000
TAKES_NS = 80_000


class Stand:
    """Requests that take a thread's time, as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
        self.now_ns = START_MS * NS_PER_MS
        self.timed_ns = 0
        self.looks = 0
        self.takes_ns = 0
        monkeypatch.setattr(charged_produce, "DICE", random.Random(13))
        monkeypatch.setattr(time, "thread_time_ns", self._look)
        self.meter = Meter(Tags("user", "client"), WINDOW, limit, START_MS)
        account = Account(None, None, self.meter, None)
        charge: Any = SimpleNamespace(account=account, now_ns=lambda: self.now_ns)
        context: Any = SimpleNamespace(client_id="client")
        inner: Any = SimpleNamespace(run=self._run)
        self._charged = ChargedProduces(inner, context, charge)

    def _look(self) -> int:
        self.looks += 1
        return self.timed_ns

    def _run(self, *_: object) -> bytes:
        self.timed_ns += self.takes_ns
        return b"answer"

    def run(self, takes_ns: int) -> None:
        cells: Any = None
        self.takes_ns = takes_ns
        self.now_ns += PACE_NS
        answer = self._charged.run(memoryview(b"request"), cells, may_wait=True)
        assert answer == b"answer"

    @property
    def charged_ms(self) -> float:
        """Of the second and a half that has gone by."""
        return self.meter.measure(self.now_ns // NS_PER_MS) * 10 * MS_IN_PERCENT


def every(number: int, cheap: int) -> Callable[[int], bool]:
    return lambda each: each % number == cheap


CHEAP = {
    "the first ones": lambda number: number < 8,
    "each sixteenth": every(16, 0),
    "as many as are timed": every(TIMED, TIMED - 1),
    "when something is told": every(DELAY_MS * NS_PER_MS // PACE_NS, 0),
    "about when something is told": lambda number: number % (DELAY_MS * NS_PER_MS // PACE_NS) < 5,
}


@pytest.mark.parametrize("cheap", CHEAP.values(), ids=CHEAP)
def test_who_has_some_requests_cost_nothing_is_charged_for_the_others(
    monkeypatch: pytest.MonkeyPatch, cheap: Callable[[int], bool]
) -> None:
    stand = Stand(monkeypatch, limit=1e6)
    for number in range(REQUESTS):
        stand.run(0 if cheap(number) else TAKES_NS)

    assert stand.charged_ms == pytest.approx(stand.timed_ns / NS_PER_MS, rel=0.2)
    assert stand.looks < 2 * REQUESTS / 100, "most are not timed"
