"""What a request is charged of its thread's time, and what it may fetch at once."""

import threading
import time
from collections.abc import Callable

import pytest

from kavka.broker.quotas.account import Account
from kavka.broker.quotas.charging import Charge
from kavka.broker.quotas.limits import Tags
from kavka.broker.quotas.meters import Meter
from kavka.broker.quotas.samples import Window
from kavka.protocol.messages.fetch import (
    FetchRequest,
    ReplicaState,
)


def request_charge() -> tuple[Charge, Meter, Meter]:
    """Of a client with a request quota, what counts its time, and what counts that of brokers."""
    meter, exempt = (Meter(Tags("", ""), Window(2, 1000), 1e9, 0) for _ in range(2))
    return Charge(Account(None, None, meter, None), exempt, lambda: 0), meter, exempt


def work(milliseconds: int) -> None:
    until_ns = time.thread_time_ns() + milliseconds * 1_000_000
    while time.thread_time_ns() < until_ns:
        pass


def elsewhere(run: Callable[[], object]) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def consumer_fetch() -> FetchRequest:
    return FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], forgotten_topics_data=[])


@pytest.mark.parametrize("ran_first", [True, False])
def test_the_time_that_a_later_answer_takes_counts_by_the_clock_of_its_own_thread(ran_first: bool) -> None:
    # So far ahead of any other thread's clock that to compare the two would show.
    work(60)
    charge, meter, _ = request_charge()

    def answer() -> None:
        charge.resumed()
        work(20)
        charge.fetched(1)
        work(10)
        charge.answered(later=True)

    if not ran_first:
        elsewhere(answer)
    charge.ran(1, 100, consumer_fetch())
    if ran_first:
        elsewhere(answer)

    # Percent of a second; the window is one of two seconds, of which there was one at least.
    assert 3.0 <= meter.measure(0) < 4.5


@pytest.mark.parametrize("answers_at_once", [True, False])
def test_a_fetch_that_another_thread_answers_before_anybody_waits_counts_by_no_clock_but_its_own(
    monkeypatch: pytest.MonkeyPatch, *, answers_at_once: bool
) -> None:
    handler, clocks_ms = threading.get_ident(), {threading.get_ident(): 1_000_000}
    monkeypatch.setattr(time, "thread_time_ns", lambda: clocks_ms.get(threading.get_ident(), 500) * 1_000_000)
    charge, meter, _ = request_charge()

    def answer() -> None:
        charge.resumed()
        clocks_ms[threading.get_ident()] = 520
        charge.fetched(1)

    # As soon as it is parked: its promise is settled when the handler's thread, or one between, comes to watch it.
    elsewhere(answer)
    clocks_ms[handler] += 10
    charge.ran(1, 100, consumer_fetch())
    if answers_at_once:
        charge.answered(later=True)
    else:
        elsewhere(lambda: charge.answered(later=True))

    assert meter.measure(0) == pytest.approx(3.0)


def test_a_fetch_that_its_handler_answers_is_counted_once() -> None:
    charge, meter, _ = request_charge()
    # Where the wait is over before it has begun, the handler's thread answers.
    charge.resumed()
    work(20)
    charge.fetched(1)
    work(10)
    charge.ran(1, 100, consumer_fetch())
    charge.answered()

    assert 3.0 <= meter.measure(0) < 4.5


def test_a_follower_s_fetch_is_counted_apart_with_all_of_its_time() -> None:
    charge, meter, exempt = request_charge()
    request = consumer_fetch()
    request.replica_state = ReplicaState(replica_id=3)
    work(10)
    charge.ran(1, 100, request)

    def answer() -> None:
        charge.resumed()
        work(20)
        charge.exempt()
        charge.answered(later=True)

    elsewhere(answer)
    assert meter.measure(0) == 0
    assert 3.0 <= exempt.measure(0) < 4.5


def test_to_encode_an_answer_counts_but_throttles_nobody() -> None:
    charge, meter, _ = request_charge()
    charge.ran(3, 100, None)
    work(20)
    charge.answered()

    assert 2.0 <= meter.measure(0) < 3.5
    assert charge.throttle_ms == 0


def test_a_charge_says_what_may_be_fetched_at_once() -> None:
    meter = Meter(Tags("", ""), Window(11, 1000), 1000, 0)
    account = Account(None, meter, None, None)
    charge = Charge(account, meter, lambda: 0)

    assert charge.most_fetched_bytes() == 10_000
    assert charge.fetched(10_000)
    assert not charge.fetched(100)
    assert charge.throttle_ms == 100
    # What was not sent does not count.
    assert meter.measure(0) == 1000
