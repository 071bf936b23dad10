"""What a broker may do wrong: it costs the connection, and no more."""

import contextlib
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from kavka.client import (
    AnswerTimeoutError,
    BadAnswerError,
    DisconnectedError,
)
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.client_line import SETTINGS, Clock, Line
from tests.support.scripted_broker import Visitor, framed, versions_response

MIB = 1024 * 1024
FLOOD_BYTES = 16 * MIB


def wrong_correlation_id(visitor: Visitor) -> None:
    asked = visitor.asked()
    visitor.answer(asked, HeartbeatResponse(error_code=0), correlation_id=asked.header.correlation_id + 1)


def cut_answer(visitor: Visitor) -> None:
    whole = framed(visitor.asked(), HeartbeatResponse(error_code=0))
    visitor.socket.sendall(struct.pack(">i", len(whole) - 5) + whole[4:-1])


def oversized_answer(visitor: Visitor) -> None:
    visitor.socket.sendall(struct.pack(">i", SETTINGS.max_answer_bytes + 1))


def negative_size(visitor: Visitor) -> None:
    visitor.socket.sendall(struct.pack(">i", -1))


def trailing_bytes(visitor: Visitor) -> None:
    whole = framed(visitor.asked(), HeartbeatResponse(error_code=0)) + b"more"
    visitor.socket.sendall(struct.pack(">i", len(whole) - 4) + whole[4:])


def other_protocol(visitor: Visitor) -> None:
    visitor.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


LIES = [wrong_correlation_id, cut_answer, oversized_answer, negative_size, trailing_bytes, other_protocol]


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_answer_closes_the_connection_and_is_counted(line: Line, lie: Callable[[Visitor], None]) -> None:
    visitor = line.connect()
    line.send()
    lie(visitor)
    assert isinstance(line.one_answer(), BadAnswerError)
    assert visitor.closed_by_peer()
    assert (line.client.counts.bad_answers, line.client.counts.disconnects) == (1, 1)

    again = line.connect()
    line.send()
    again.answer(again.asked(), HeartbeatResponse(error_code=0))
    assert line.one_answer().error_code == 0


def test_an_answer_that_nobody_asked_for_closes_the_connection(line: Line) -> None:
    visitor = line.connect()
    visitor.socket.sendall(struct.pack(">iih", 6, 0, 0))
    line.until(lambda: line.client.counts.bad_answers == 1)
    assert visitor.closed_by_peer()


def test_a_good_answer_before_a_bad_one_counts(line: Line) -> None:
    visitor = line.connect()
    line.send()
    line.send()
    good = framed(visitor.asked(), HeartbeatResponse(error_code=0))
    visitor.socket.sendall(good + good)
    line.until(lambda: len(line.answers) == 2)
    assert line.answers[0].error_code == 0
    assert isinstance(line.answers[1], BadAnswerError)


def test_a_lying_size_within_the_limit_costs_only_what_has_come(line: Line) -> None:
    visitor = line.connect()
    line.send()
    visitor.asked()
    visitor.socket.sendall(struct.pack(">i", SETTINGS.max_answer_bytes) + bytes(1000))
    line.until(lambda: line.client.counts.received_bytes == 1004)
    link = line.client._links[line.node.key]
    buffer = link.connection.reader.buffer
    assert buffer is not None
    assert len(buffer) <= 64 * 1024


def test_a_frame_that_claims_100_mib_costs_what_has_come_and_its_connection(timed: Line, clock: Clock) -> None:
    """Just what an answer may be: nobody can say that it lies, until it is late."""
    visitor = timed.connect()
    timed.send()
    visitor.asked()
    tracemalloc.start()
    try:
        visitor.socket.sendall(struct.pack(">i", 100 * MIB) + bytes(1_000))
        timed.until(lambda: timed.client.counts.received_bytes == 1_004)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    clock.now_ms += SETTINGS.request_timeout_ms + 1
    assert isinstance(timed.one_answer(), AnswerTimeoutError)
    assert visitor.closed_by_peer()


@pytest.mark.parametrize("how", ["close", "reset", "cut"])
def test_a_broken_connection_fails_all_that_was_in_flight(line: Line, how: str) -> None:
    visitor = line.connect()
    for _ in range(3):
        line.send()
    asked = visitor.asked()
    if how == "cut":
        visitor.socket.sendall(framed(asked, HeartbeatResponse(error_code=0))[:-1])
    if how == "reset":
        visitor.reset()
    else:
        visitor.socket.close()
    line.until(lambda: len(line.answers) == 3)
    assert all(isinstance(answer, DisconnectedError) for answer in line.answers)
    assert line.client.counts.disconnects == 1
    assert line.client.counts.bad_answers == 0


def test_lying_versions_close_the_connection(negotiating: Line) -> None:
    negotiating.client.ready(negotiating.node)
    visitor = negotiating.broker.accept()
    negotiating.until(lambda: negotiating.client.counts.sent_bytes)
    visitor.answer(visitor.asked(), versions_response(), correlation_id=99)
    negotiating.until(lambda: negotiating.client.counts.bad_answers == 1)
    assert visitor.closed_by_peer()
    assert negotiating.client.counts.connections == 0


def test_an_answer_without_end_is_read_until_its_time_is_over(timed: Line, clock: Clock) -> None:
    visitor = timed.connect()
    timed.send()
    visitor.asked()
    visitor.socket.sendall(struct.pack(">i", SETTINGS.max_answer_bytes))
    flood = threading.Thread(target=_pour, args=(visitor.socket,))
    flood.start()
    timed.until(lambda: timed.client.counts.received_bytes > FLOOD_BYTES // 2)
    clock.now_ms += SETTINGS.request_timeout_ms + 1
    assert isinstance(timed.one_answer(), AnswerTimeoutError)
    flood.join()
    assert visitor.closed_by_peer()


def _pour(receiver: socket.socket) -> None:
    with contextlib.suppress(OSError):
        for _ in range(FLOOD_BYTES // 65_536):
            receiver.sendall(bytes(65_536))
