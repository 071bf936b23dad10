"""Topics that are not there, where nobody may create them: which error, and that no call waits longer than it may."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import (
    AbortableError,
    InvalidTopicError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker
from tests.support.scripted_broker import Asked
from tests.support.time_limits import within

TIMEOUT_S = 120.0
BLOCK_MS = 300
QUICK: dict[str, Any] = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 20, "linger_ms": 0}


class Refusing(ProducersBroker):
    """Says `code` of each topic, until that is 0; notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.code: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.asked: list[Any] = []
        self.was_asked_often = threading.Event()
        self.answers[ApiKey.METADATA] = self._described

    def _described(self, asked: Asked) -> MetadataResponse:
        answer = self._metadata(asked)
        self.asked.append(asked.request)
        if sum(bool(each.topics) for each in self.asked) >= 3:
            self.was_asked_often.set()
        if self.code:
            names = [each.name for each in asked.request.topics or []]
            answer.topics = [
                MetadataResponseTopic(
                    error_code=self.code, name=name, topic_id=bytes(16), is_internal=False, partitions=[]
                )
                for name in names
            ]
        return answer


class Line:
    """A broker without topics, and producers to it."""

    def __init__(self) -> None:
        self.serving = Refusing()
        self.broker = AnsweringBroker(self.serving.answers)
        self.broker.__enter__()
        self.serving.node = self.broker.node

    def producer(self, **settings: Any) -> Producer:
        """One that has heard already that the topic is not there: so that BLOCK_MS are enough on any machine."""
        made = Producer(bootstrap_servers=self.broker.bootstrap, **{"max_block_ms": BLOCK_MS, **QUICK, **settings})
        made._thread.start()
        made._metadata.want([TOPIC])
        assert self.serving.was_asked_often.wait(TIMEOUT_S)
        return made


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.broker.__exit__(None, None, None)


def test_a_record_fails_once_its_time_to_block_is_over(line: Line) -> None:
    heard: list[Any] = []
    with line.producer() as producer:
        with within(BLOCK_MS, least_ms=BLOCK_MS):
            future = producer.send(TOPIC, b"kavka", on_delivery=lambda metadata, error: heard.append((metadata, error)))
        error = future.exception(0)
    assert isinstance(error, KafkaTimeoutError)
    assert "birds" in str(error)
    assert str(BLOCK_MS) in str(error)
    assert isinstance(error.__cause__, UnknownTopicOrPartitionError), "why it is not there"
    ((metadata, told),) = heard
    assert (metadata.topic, metadata.partition, told) == (TOPIC, -1, error)
    # A producer lets its topics be created, where the broker does.
    assert {each.allow_auto_topic_creation for each in line.serving.asked} == {True}


def test_so_do_questions_for_its_partitions(line: Line) -> None:
    with line.producer() as producer:
        with within(BLOCK_MS, least_ms=BLOCK_MS), pytest.raises(KafkaTimeoutError) as caught:
            producer.partitions_for(TOPIC)
        assert isinstance(caught.value.__cause__, UnknownTopicOrPartitionError)


def test_a_producer_that_may_not_block_does_not(line: Line) -> None:
    """Each record asks for the topic; the answer is there for a later one."""
    with line.producer(max_block_ms=0) as producer:
        assert isinstance(producer.send(TOPIC, b"kavka").exception(0), KafkaTimeoutError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
    ],
)
def test_what_waiting_does_not_mend_is_not_waited_for(line: Line, code: int, kind: type[Exception]) -> None:
    with line.producer(max_block_ms=3_600_000) as producer:
        line.serving.code = code
        error = producer.send(TOPIC, b"kavka").exception(0)
        assert isinstance(error, kind)
        assert str(error) == f"topic {TOPIC!r}: {kind()}"


def test_a_topic_that_is_created_meanwhile_is_sent_to(line: Line) -> None:
    with line.producer(max_block_ms=int(TIMEOUT_S) * 1000) as producer:
        offsets: list[int] = []
        thread = threading.Thread(target=lambda: offsets.append(producer.send(TOPIC, b"k").result(TIMEOUT_S).offset))
        thread.start()
        assert offsets == []
        line.serving.code = 0
        thread.join(TIMEOUT_S)
        assert offsets == [0]


def test_a_transaction_without_its_record_can_only_be_aborted(line: Line) -> None:
    with line.producer(transactional_id="t") as producer:
        producer.init_transactions(TIMEOUT_S * 1000)
        producer.begin_transaction()
        assert isinstance(producer.send(TOPIC, b"kavka").exception(0), KafkaTimeoutError)
        with pytest.raises(AbortableError):
            producer.commit_transaction(TIMEOUT_S * 1000)
        producer.abort_transaction(TIMEOUT_S * 1000)
