"""A producer over a socket: a flush that runs out, many records at once, and the size of the socket's buffers."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import KafkaTimeoutError
from kavka.protocol.api import ApiKey
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker
from tests.support.scripted_broker import Asked

TIMEOUT_S = 120.0
SIZE_BYTES = 30_000


class Line:
    """A broker that gives no answers to records while it is `silent`."""

    def __init__(self) -> None:
        self.silent = False
        self.held: list[Asked] = []
        serving = ProducersBroker()
        self.broker = AnsweringBroker(serving.answers, self._mangle)
        self.broker.__enter__()
        serving.node = self.broker.node

    def _mangle(self, asked: Asked, frame: bytes) -> bytes | None:
        if asked.header.api_key == ApiKey.PRODUCE and self.silent:
            # The connection ends, and the record is tried again.
            return None
        return frame

    def producer(self, **settings: Any) -> Producer:
        quick = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 5, "reconnect_backoff_ms": 5}
        return Producer(bootstrap_servers=self.broker.bootstrap, reconnect_backoff_max_ms=5, **{**quick, **settings})


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.broker.__exit__(None, None, None)


def test_what_a_flush_did_not_wait_for_is_delivered_nevertheless(line: Line) -> None:
    with line.producer(linger_ms=0) as producer:
        producer.send(TOPIC, b"first").result(TIMEOUT_S)
        line.silent = True
        futures = producer.send_many(TOPIC, [b"kavka"] * 3)
        with pytest.raises(KafkaTimeoutError):
            producer.flush(50)
        assert not any(future.done() for future in futures)
        line.silent = False
        producer.flush(TIMEOUT_S * 1000)
        assert all(future.exception(0) is None for future in futures)


def test_many_are_delivered_and_told_of_in_their_order(line: Line) -> None:
    heard: list[int] = []
    with line.producer(linger_ms=20) as producer:
        futures = producer.send_many(
            TOPIC,
            [b"%d" % number for number in range(50)],
            on_delivery=lambda metadata, _: heard.append(metadata.offset),
        )
        producer.flush(TIMEOUT_S * 1000)
        assert [future.result(0).offset for future in futures] == heard
    assert len(heard) == 50


@pytest.mark.parametrize(
    ("setting", "option"), [("send_buffer_bytes", socket.SO_SNDBUF), ("receive_buffer_bytes", socket.SO_RCVBUF)]
)
def test_the_sockets_buffers_are_as_large_as_was_asked_for(line: Line, setting: str, option: int) -> None:
    """Linux takes twice as much, for itself; without the setting (-1) it is as the system has it."""
    sizes = []
    for size in (SIZE_BYTES, 2 * SIZE_BYTES):
        with line.producer(linger_ms=0, **{setting: size}) as producer:
            producer.send(TOPIC, b"kavka").result(TIMEOUT_S)
            links = [link for link in producer._thread._network._links.values() if link.has_socket]
            assert links
            sizes += [{link.socket.getsockopt(socket.SOL_SOCKET, option) for link in links}]
    assert sizes in ([{2 * SIZE_BYTES}, {4 * SIZE_BYTES}], [{SIZE_BYTES}, {2 * SIZE_BYTES}])
