"""DescribeTopicPartitions: pages over topics and partitions."""

from typing import Any

import pytest

from kavka.broker.handlers import describe_topic_partitions as _  # noqa: F401 - registers the handler
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.support.broker_handlers import BROKER_ID, Broker, Denying


def request(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def page(response: Any) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    shown = [(each.name, [part.partition_index for part in each.partitions]) for each in response.topics]
    cursor = response.next_cursor
    return shown, None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def broker() -> Broker:
    return Broker(a=[BROKER_ID] * 3, b=[BROKER_ID] * 2, c=[BROKER_ID])


def test_all_topics_are_shown_in_name_order(broker: Broker) -> None:
    assert page(broker.ask(request(), 0)) == ([("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])], None)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
def test_following_the_cursor_shows_every_partition_once(broker: Broker, limit: int) -> None:
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        shown, cursor = page(broker.ask(request(limit=limit, cursor=cursor), 0))
        partitions = [(name, index) for name, indexes in shown for index in indexes]
        assert 1 <= len(partitions) <= limit
        seen += partitions
        if cursor is None:
            break

    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]


def test_a_page_is_never_larger_than_the_brokers_limit() -> None:
    broker = Broker({"max.request.partition.size.limit": "2"}, a=[BROKER_ID] * 3)

    assert page(broker.ask(request(limit=100), 0)) == ([("a", [0, 1])], ("a", 2))


def test_topics_that_are_named_but_missing_or_hidden_are_said(broker: Broker) -> None:
    response = broker.ask(request("a", "nowhere", "b", "not a name"), 0, authorizer=Denying((Operation.DESCRIBE, "b")))

    assert {each.name: each.error_code for each in response.topics} == {
        "a": ErrorCode.NONE,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "not a name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "b": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_topics_that_are_hidden_are_left_out_of_all_topics(broker: Broker) -> None:
    response = broker.ask(request(), 0, authorizer=Denying((Operation.DESCRIBE, "b")))

    assert [each.name for each in response.topics] == ["a", "c"]


def test_a_negative_cursor_is_an_invalid_request(broker: Broker) -> None:
    (topic,) = broker.ask(request("a", cursor=("a", -1)), 0).topics

    assert topic.error_code == ErrorCode.INVALID_REQUEST
