"""The group's coordinator: a connection of its own, and what a consumer's user gets when it is gone."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kavka.client import Consumer
from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.consumer.group.errors import RetriableCommitFailedError
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kavka.protocol.messages.join_group import JoinGroupRequest
from tests.component.client.consumer.serving_consumers import BIRDS, QUICK, TOPIC, ConsumersBroker, batch_of
from tests.support.answering_broker import Answer
from tests.support.processes import wait_until
from tests.support.scripted_broker import Asked
from tests.support.time_limits import within

TIMEOUT_S = 120.0
LIMIT_MS = 500.0
REQUEST_MS = 2_000
GENEROUS_S = 30.0
"""Half of what a call takes whose own limit is not looked at."""


def held(answer: Answer, until: threading.Event) -> Answer:
    """The same, but not before."""

    def waits(asked: Asked) -> Any:
        response: Any = answer(asked)
        until.wait(TIMEOUT_S)
        return response

    return waits


def test_a_fetch_that_waits_for_records_holds_up_no_commit() -> None:
    serving, until = ConsumersBroker(), threading.Event()
    serving.answers[ApiKey.FETCH] = held(serving.answers[ApiKey.FETCH], until)
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **QUICK) as consumer,
    ):
        consumer.assign([BIRDS])
        wait_until(lambda: list(consumer.poll(5)) or serving.requests(FetchRequest), TIMEOUT_S, "nothing is fetched")
        try:
            consumer.commit_sync({BIRDS: OffsetAndMetadata(7)}, timeout_ms=GENEROUS_S * 1000)
            assert consumer.committed([BIRDS], timeout_ms=GENEROUS_S * 1000) == {BIRDS: OffsetAndMetadata(7)}
            assert len(serving.requests(FetchRequest)) == 1
        finally:
            until.set()


def test_a_join_that_waits_for_the_group_holds_up_no_question() -> None:
    serving, until = ConsumersBroker([batch_of(3)]), threading.Event()
    serving.answers[ApiKey.JOIN_GROUP] = held(serving.answers[ApiKey.JOIN_GROUP], until)
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **QUICK) as consumer,
    ):
        consumer.subscribe([TOPIC])
        wait_until(lambda: list(consumer.poll(5)) or serving.requests(JoinGroupRequest), TIMEOUT_S, "nobody joins")
        try:
            assert consumer.end_offsets([BIRDS], timeout_ms=GENEROUS_S * 1000) == {BIRDS: 3}
        finally:
            until.set()
        wait_until(lambda: len(consumer.poll(5)) == 3, TIMEOUT_S, "not joined")


class Gone:
    """A coordinator that is gone until `is_back` is set."""

    def __init__(self, serving: ConsumersBroker, way: str) -> None:
        self.is_back = threading.Event()
        if way == "is silent":
            for key in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
                serving.answers[key] = held(serving.answers[key], self.is_back)
            return
        found = serving.answers[ApiKey.FIND_COORDINATOR]
        # Bound, so nobody else gets the port; not listening.
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        where = ("127.0.0.1", self._socket.getsockname()[1], 1, 0)
        if way == "is unknown":
            where = ("", -1, -1, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))

        def not_found(asked: Asked) -> Any:
            if self.is_back.is_set():
                return found(asked)
            host, port, node_id, code = where
            rows = [
                Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=None)
                for key in asked.request.coordinator_keys
            ]
            return FindCoordinatorResponse(coordinators=rows)

        serving.answers[ApiKey.FIND_COORDINATOR] = not_found

    def come_back(self) -> None:
        self.is_back.set()
        if hasattr(self, "_socket"):
            self._socket.close()


@pytest.mark.parametrize("way", ["is silent", "is unknown", "refuses"])
def test_calls_that_need_a_coordinator_end_in_time_and_go_on_once_it_is_back(way: str) -> None:
    serving = ConsumersBroker([batch_of(3)])
    gone = Gone(serving, way)
    at_seven = {BIRDS: OffsetAndMetadata(7)}
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, group_id="g", request_timeout_ms=REQUEST_MS, **QUICK) as consumer,
    ):
        try:
            consumer.assign([BIRDS])
            calls: list[Callable[[], object]] = [
                lambda: consumer.commit_sync(at_seven, timeout_ms=LIMIT_MS),
                lambda: consumer.committed([BIRDS], timeout_ms=LIMIT_MS),
                lambda: consumer.position(BIRDS, timeout_ms=LIMIT_MS),
            ]
            for call in calls:
                with within(LIMIT_MS, least_ms=LIMIT_MS), pytest.raises(KafkaTimeoutError):
                    call()
            heard: list[Exception | None] = []
            # A coordinator that says nothing is found out by the request's time limit.
            with within(REQUEST_MS):
                consumer.commit_async(at_seven, lambda _, error: heard.append(error))
                wait_until(lambda: list(consumer.poll(5)) or heard, TIMEOUT_S, "the callback is not called")
            assert isinstance(heard[0], RetriableCommitFailedError)
        finally:
            gone.come_back()
        consumer.commit_sync({BIRDS: OffsetAndMetadata(1)}, timeout_ms=TIMEOUT_S * 1000)
        assert 1 in serving.commits
        wait_until(lambda: len(consumer.poll(5)), TIMEOUT_S, "nothing is read")
