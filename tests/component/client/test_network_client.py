"""Requests and answers, wake-ups, load and metadata, against a broker that does what it is told."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kavka.client import (
    AnswerTimeoutError,
    DisconnectedError,
    NetworkClient,
    Node,
)
from kavka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.client_line import HEARTBEAT, SETTINGS, TIMEOUT_S, Clock, Line
from tests.support.function_calls import calls_of
from tests.support.processes import wait_until
from tests.support.scripted_broker import ScriptedBroker, framed


def test_a_request_is_answered(line: Line) -> None:
    visitor = line.connect()
    line.send()
    asked = visitor.asked()
    assert asked.request.group_id == "g"
    assert asked.header.client_id == "kavka"
    visitor.answer(asked, HeartbeatResponse(error_code=27))
    assert line.one_answer().error_code == 27
    counts = line.client.counts
    assert (counts.connections, counts.requests, counts.answers, counts.disconnects) == (1, 1, 1, 0)


def test_several_requests_are_in_flight_and_answered_in_order(line: Line) -> None:
    visitor = line.connect()
    for _ in range(5):
        line.send()
    assert not line.client.ready(line.node), "five is the limit"
    with pytest.raises(RuntimeError, match="not ready"):
        line.send()
    asked = [visitor.asked() for _ in range(5)]
    visitor.socket.sendall(b"".join(framed(each, HeartbeatResponse(error_code=i)) for i, each in enumerate(asked)))
    line.until(lambda: len(line.answers) == 5)
    assert [answer.error_code for answer in line.answers] == [0, 1, 2, 3, 4]
    assert line.client.ready(line.node)


def test_requests_are_numbered_on_when_the_connection_is_another_one(line: Line) -> None:
    numbers = []
    for _ in range(3):
        visitor = line.connect()
        for _ in range(2):
            line.send()
            numbers.append(visitor.asked().header.correlation_id)
        visitor.reset()
        line.until(lambda: len(line.answers) == 2)
        line.answers.clear()

    assert numbers == sorted(set(numbers))


def test_what_one_node_is_asked_takes_no_numbers_of_another_and_who_is_met_anew_is_counted_on(line: Line) -> None:
    """A broker takes what comes under a number below the last one for late: numbers must not begin again below."""
    busy = line.node._replace(lane="busy")
    line.until(lambda: line.client.ready(busy))
    for _ in range(3):
        line.client.send(busy, HEARTBEAT, line.answers.append)
    line.broker.accept()
    visitor = line.connect()
    numbers = []
    for _ in range(2):
        line.send()
        numbers.append(visitor.asked().header.correlation_id)
    line.client.forget(line.node)
    visitor = line.connect()
    line.send()
    numbers.append(visitor.asked().header.correlation_id)

    assert numbers == [0, 1, 2]


def test_an_answer_may_come_byte_by_byte(line: Line) -> None:
    visitor = line.connect()
    line.send()
    for byte in framed(visitor.asked(), HeartbeatResponse(error_code=5)):
        visitor.socket.sendall(bytes([byte]))
        line.client.poll(0)
    assert line.one_answer().error_code == 5


def test_large_answers_and_requests_pass_in_pieces(line: Line) -> None:
    records = bytes(range(256)) * 20_000
    visitor = line.connect()
    line.send(fetch_request(topic_name="t" * 30_000, times=200), versions=(11, 11))
    taken: list[Any] = []
    reading = threading.Thread(target=lambda: taken.append(visitor.asked()))
    reading.start()
    line.until(lambda: taken)
    assert len(taken[0].request.topics) == 200
    data = PartitionData(partition_index=0, error_code=0, high_watermark=7, aborted_transactions=None, records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])
    sending = threading.Thread(target=visitor.answer, args=(taken[0], response))
    sending.start()

    answer = line.one_answer()

    assert answer.responses[0].partitions[0].records == records
    reading.join()
    sending.join()


def fetch_request(topic_name: str, times: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=topic_name, partitions=[partition]) for _ in range(times)],
        forgotten_topics_data=[],
    )


def test_an_answer_that_is_too_late_closes_the_connection(timed: Line, clock: Clock) -> None:
    visitor = timed.connect()
    timed.send(timeout_ms=5000)
    timed.send(timeout_ms=9000)
    clock.now_ms += 4999
    timed.client.poll(0)
    assert timed.answers == []
    clock.now_ms += 1
    timed.until(lambda: len(timed.answers) == 2)
    assert all(isinstance(answer, AnswerTimeoutError) for answer in timed.answers)
    assert timed.client.counts.timeouts == 1
    visitor.asked()
    visitor.asked()
    assert visitor.closed_by_peer()


def test_wakeup_ends_a_wait(line: Line) -> None:
    woken = threading.Thread(target=lambda: line.client.poll(TIMEOUT_S * 1000))
    woken.start()
    line.client.wakeup()
    line.client.wakeup()
    woken.join(TIMEOUT_S)
    assert not woken.is_alive()


def test_what_is_in_flight_is_called_back_when_the_client_is_closed() -> None:
    line = Line(SETTINGS)
    with line.broker:
        visitor = line.connect()
        line.send()
        line.client.close()
        assert isinstance(line.answers[0], DisconnectedError)
        visitor.asked()
        assert visitor.closed_by_peer()
        line.client.wakeup()


def test_a_callback_that_fails_keeps_no_other_from_its_answer(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    visitor = line.connect()

    def fails(_answer: Any) -> None:
        raise ValueError("not mine")

    line.client.send(line.node, HEARTBEAT, fails)
    line.send()
    for _ in range(2):
        visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0))
    assert line.one_answer().error_code == 0
    assert "not mine" in caplog.text


def test_a_callback_may_send_the_next_request(line: Line) -> None:
    visitor = line.connect()
    line.client.send(line.node, HEARTBEAT, lambda _: line.send())
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=1))
    line.until(lambda: line.client.counts.requests == 2)
    visitor.answer(visitor.asked(), HeartbeatResponse(error_code=2))
    assert line.one_answer().error_code == 2


def test_the_way_of_a_request_and_its_answer_stays_short(line: Line) -> None:
    visitor = line.connect()
    sent = polled = 0
    for _ in range(2):
        # The first time the codec compiles.
        sent = calls_of(line.send)
        visitor.answer(visitor.asked(), HeartbeatResponse(error_code=0))
        polled = calls_of(lambda: line.client.poll(TIMEOUT_S * 1000))
        assert line.one_answer().error_code == 0
    assert sent <= 70
    assert polled <= 72


class TestLeastLoaded:
    def test_it_is_the_connected_node_with_the_fewest_in_flight(self, line: Line) -> None:
        line.connect()
        with ScriptedBroker(2) as second:
            nodes = [line.node, second.node, Node(3, "127.0.0.1", 1)]
            assert line.client.least_loaded(nodes) == line.node
            line.send()
            assert line.client.least_loaded(nodes) == line.node, "rather than one that is not connected"
            line.until(lambda: line.client.ready(second.node))
            assert line.client.least_loaded(nodes) == second.node
            line.client.send(second.node, HEARTBEAT, line.answers.append)
            line.client.send(second.node, HEARTBEAT, line.answers.append)
            assert line.client.least_loaded(nodes) == line.node

    def test_there_is_none_while_all_have_to_wait(self, timed: Line, clock: Clock) -> None:
        timed.broker.stop_listening()
        assert timed.client.least_loaded([timed.node]) == timed.node
        timed.client.ready(timed.node)
        timed.until(lambda: timed.client.failures(timed.node))
        assert timed.client.least_loaded([timed.node]) is None
        assert timed.client.least_loaded([]) is None
        clock.now_ms += timed.client.delay_ms(timed.node)
        assert timed.client.least_loaded([timed.node]) == timed.node


class KnownNodes:
    """Metadata that are due until they were answered."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self.wait_ms = 0.0
        self.heard: list[Any] = []

    def nodes(self) -> list[Node]:
        return self._nodes

    def due_in_ms(self, _now_ms: float) -> float:
        return self.wait_ms

    def unreachable(self, _now_ms: float) -> bool:
        return False

    def request_update(self) -> None:
        """They are due anyway."""

    def request(self) -> MetadataRequest:
        return MetadataRequest(topics=None)

    def updated(self, response: Any, _now_ms: float) -> None:
        self.wait_ms = float("inf")
        self.heard.append(response)

    def failed(self, error: Exception, _now_ms: float) -> None:
        self.heard.append(error)


def test_metadata_are_fetched_when_they_are_due_and_again_after_a_failure() -> None:
    with ScriptedBroker() as broker:
        known = KnownNodes([broker.node])
        client = NetworkClient(SETTINGS, metadata=known)

        def step(condition: Callable[[], object]) -> None:
            def met() -> bool:
                client.poll(5)
                return bool(condition())

            wait_until(met, TIMEOUT_S, "no metadata")

        step(lambda: client.counts.requests == 1)
        broker.accept().socket.close()
        step(lambda: known.heard)
        assert isinstance(known.heard.pop(), DisconnectedError)
        step(lambda: client.counts.requests == 2)
        visitor = broker.accept()
        visitor.answer(visitor.asked(), MetadataResponse(brokers=[], topics=[], cluster_id="c"))
        step(lambda: known.heard)
        assert known.heard.pop().cluster_id == "c"
        client.poll(0)
        assert client.counts.requests == 2
        client.close()
