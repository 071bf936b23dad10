"""Open connections as time goes by: throttled, idle, closed by the peer; and requests that nobody answers."""

from collections.abc import Generator

import pytest

from kavka.client import AnswerTimeoutError, DisconnectedError
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.produce import ProduceRequest
from tests.component.client.conftest import lines
from tests.support.client_line import SETTINGS, Clock, Line

NOTHING = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])


@pytest.fixture
def kept(clock: Clock) -> Generator[Line, None, None]:
    """Closes what is idle for a second, and heeds throttling."""
    yield from lines(SETTINGS._replace(max_idle_ms=1_000, honours_throttling=True), clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_broker_that_asks_to_be_left_alone_is_left_alone(kept: Line, clock: Clock) -> None:
    visitor = kept.connect()
    kept.send()
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0, throttle_time_ms=500))
    kept.one_answer()
    assert not kept.client.ready(kept.node)
    assert kept.client.delay_ms(kept.node) == 500
    assert kept.client.least_loaded([kept.node]) is None
    clock.now_ms += 499
    kept.client.poll(0)
    assert not kept.client.ready(kept.node)
    clock.now_ms += 1
    kept.client.poll(0)
    assert kept.client.ready(kept.node)


def test_a_broker_that_waits_by_itself_is_not_left_alone(kept: Line) -> None:
    visitor = kept.connect()
    kept.send(versions=(1, 1))
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0, throttle_time_ms=500))
    kept.one_answer()
    assert kept.client.ready(kept.node)


def test_brokers_among_themselves_heed_no_throttling(line: Line) -> None:
    visitor = line.connect()
    line.send()
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0, throttle_time_ms=500))
    line.one_answer()
    assert line.client.ready(line.node)


def test_an_idle_connection_is_closed_and_counts_as_no_failure(kept: Line, clock: Clock) -> None:
    visitor = kept.connect()
    clock.now_ms += 999
    kept.client.poll(0)
    assert kept.client.ready(kept.node)
    clock.now_ms += 1
    kept.client.poll(0)
    assert visitor.closed_by_peer()
    assert kept.client.failures(kept.node) == 0
    assert kept.client.counts.disconnects == 1
    kept.connect()


def test_a_connection_that_is_asked_for_something_is_not_idle(kept: Line, clock: Clock) -> None:
    visitor = kept.connect()
    clock.now_ms += 900
    kept.send()
    for _ in range(3):
        clock.now_ms += 900
        kept.client.poll(0)
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0))
    kept.one_answer()
    clock.now_ms += 999
    kept.client.poll(0)
    assert kept.client.ready(kept.node)


def test_one_that_the_broker_closed_is_closed_here_at_once(kept: Line) -> None:
    visitor = kept.connect()
    visitor.socket.close()
    kept.until(lambda: kept.client.counts.disconnects == 1)
    assert kept.client.served(kept.node) is None


def test_what_nobody_answers_is_done_when_it_is_written(line: Line) -> None:
    visitor = line.connect()
    for _ in range(10):
        assert line.client.ready(line.node), "it is never in flight"
        line.send(NOTHING, is_answered=False)
    assert line.answers == []
    line.until(lambda: len(line.answers) == 10)
    assert line.answers == [None] * 10
    assert [visitor.asked().request.acks for _ in range(10)] == [0] * 10
    assert line.client.in_flight(line.node) == 0


def test_what_nobody_answers_and_was_not_written_fails(line: Line) -> None:
    visitor = line.connect()
    fill(line)
    visitor.reset()
    line.until(lambda: line.answers)
    assert isinstance(line.answers[-1], DisconnectedError)


def test_what_cannot_be_written_in_time_fails_too(negotiating: Line, clock: Clock) -> None:
    line = negotiating
    line.client.ready(line.node)
    line.client.poll(0)
    visitor = line.broker.accept()
    line.until(lambda: line.client.counts.sent_bytes)
    visitor.serve_versions()
    line.until(lambda: line.client.ready(line.node))
    fill(line)
    clock.now_ms += 60_000
    line.until(lambda: isinstance(line.answers[-1:] and line.answers[-1], AnswerTimeoutError))


def test_what_a_broker_serves_is_known_while_it_is_connected(negotiating: Line) -> None:
    line = negotiating
    line.client.ready(line.node)
    visitor = line.broker.accept()
    line.until(lambda: line.client.counts.sent_bytes)
    assert line.client.served(line.node) is None
    visitor.serve_versions({0: (3, 11), 12: (0, 4)})
    line.until(lambda: line.client.ready(line.node))
    served = line.client.served(line.node)
    assert served is not None
    assert (served.newest(0, (0, 13)), served.newest(0, (12, 13)), served.newest(1, (0, 1))) == (11, None, None)


def fill(line: Line) -> None:
    """Send until the socket takes no more: the last one is still on its way."""
    big = NOTHING.__class__(acks=0, timeout_ms=1, topic_data=[], transactional_id="x" * 30_000)
    while line.client.ready(line.node):
        line.send(big, is_answered=False)
