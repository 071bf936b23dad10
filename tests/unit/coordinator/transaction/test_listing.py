"""DescribeTransactions and ListTransactions."""

from itertools import count
from typing import Any

import pytest

from kavka.coordinator.regular_expressions import MAX_LENGTH
from kavka.coordinator.transaction.listing import id_filter, unknown_states
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_transactions import TopicData
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from tests.support.transaction_stage import FIRST_PRODUCER_ID, TransactionStage


@pytest.fixture
def stage() -> TransactionStage:
    """Ids of each kind: `empty`, `ongoing` for two seconds, `committed`."""
    stage = TransactionStage()
    stage.init("empty")
    stage.add("ongoing", stage.init("ongoing"), ("b", 1), ("b", 0), ("a", 3))
    producer = stage.init("committed")
    stage.add("committed", producer, ("a", 0))
    stage.end("committed", producer, committed=True)
    stage.mark()
    stage.advance(2000)
    return stage


def listed(stage: TransactionStage, **fields: Any) -> set[str]:
    request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **fields})
    found = stage.ask(lambda shard, reply: shard.list(request, reply)).answer
    return {each.transactional_id for each in id_filter(request.transactional_id_pattern)(found)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"empty", "ongoing", "committed"}),
        ({"state_filters": ["Ongoing"]}, {"ongoing"}),
        ({"state_filters": ["Ongoing", "Empty", "Strange"]}, {"ongoing", "empty"}),
        ({"state_filters": ["Strange"]}, set()),
        ({"producer_id_filters": [FIRST_PRODUCER_ID + 1, 7]}, {"ongoing"}),
        ({"state_filters": ["Empty"], "producer_id_filters": [FIRST_PRODUCER_ID + 1]}, set()),
        ({"duration_filter": 1999, "state_filters": ["Ongoing"]}, {"ongoing"}),
        ({"duration_filter": 2000, "state_filters": ["Ongoing"]}, set()),
        ({"transactional_id_pattern": ".*i.*"}, {"ongoing", "committed"}),
        ({"transactional_id_pattern": "ongo"}, set()),
        ({"transactional_id_pattern": "[oé]ngoing|\\pLmpty"}, {"ongoing", "empty"}),
        ({"transactional_id_pattern": ""}, {"empty", "ongoing", "committed"}),
    ],
)
def test_ids_are_listed_by_filters(stage: TransactionStage, fields: dict[str, Any], expected: set[str]) -> None:
    assert listed(stage, **fields) == expected


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=x)", r"(a)\1", "x" * (MAX_LENGTH + 1), "\ud800"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(BrokerError) as refused:
        id_filter(pattern)

    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_shard_leaves_the_pattern_to_those_who_hold_no_lock(stage: TransactionStage) -> None:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="ongoing")

    found = stage.ask(lambda shard, reply: shard.list(request, reply)).answer

    assert {each.transactional_id for each in found} == {"empty", "ongoing", "committed"}


def test_a_pattern_that_takes_too_long_to_match_is_refused(stage: TransactionStage) -> None:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    found = stage.ask(lambda shard, reply: shard.list(request, reply)).answer
    clock = count(step=0.75)
    slow = id_filter(".*", lambda: next(clock))

    assert len(slow(found[:2])) == 2
    with pytest.raises(BrokerError) as refused:
        slow(found)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_names_that_are_no_states_are_told() -> None:
    request = ListTransactionsRequest(state_filters=["Empty", "empty", "X"], producer_id_filters=[])
    assert unknown_states(request) == ["empty", "X"]


def test_a_transaction_is_described(stage: TransactionStage) -> None:
    described = stage.ask(lambda shard, reply: shard.describe("ongoing", reply)).answer

    assert described.error_code == ErrorCode.NONE
    assert (described.transaction_state, described.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert described.transaction_start_time_ms == stage.time_ms - 2000
    assert (described.producer_id, described.producer_epoch) == (FIRST_PRODUCER_ID + 1, 0)
    assert described.topics == [TopicData(topic="a", partitions=[3]), TopicData(topic="b", partitions=[0, 1])]
    unknown = stage.ask(lambda shard, reply: shard.describe("nobody", reply)).answer
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
