"""OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit: every version, partial errors, authorisation."""

from typing import Any, cast

import pytest

from kavka.broker.handlers import offset_commit, offset_delete, offset_fetch, txn_offset_commit
from kavka.broker.requests.handling import Context
from kavka.broker.security.acl import Operation
from kavka.cluster.promise import Promise
from kavka.coordinator.runtime.result import Producer, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, FakeConnection, topic_id_of
from tests.support.offset_stage import FakeGroup, OffsetStage
from tests.support.staged_groups import StagedGroups, StagedTransactions

HANDLERS = (offset_commit, offset_delete, offset_fetch, txn_offset_commit)
UNKNOWN, NONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
NO_TOPIC, NO_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.fixture
def broker() -> Broker:
    made = Broker(visits=[BROKER_ID] * 2, clicks=[BROKER_ID])
    made.services.groups = StagedGroups()
    made.services.transactions = StagedTransactions()
    return made


def stage_of(broker: Broker) -> OffsetStage:
    groups: StagedGroups = cast(Any, broker.services.groups)
    return groups.stage


def commit(version: int, *places: tuple[str, int], group: str = "g", metadata: str = "m", **more: Any) -> Any:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, index in places:
        part = OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata=metadata)
        if version >= 6:
            part.committed_leader_epoch = 3
        topics.setdefault(name, []).append(part)
    named = [
        OffsetCommitRequestTopic(name=name, partitions=parts)
        if version < 10
        else OffsetCommitRequestTopic(topic_id=topic_id_of(name), partitions=parts)
        for name, parts in topics.items()
    ]
    return OffsetCommitRequest(group_id=group, topics=named, **more)


def fetch(version: int, *places: tuple[str, int], group: str = "g", all_topics: bool = False) -> OffsetFetchRequest:
    if version < 8:
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[index]) for name, index in places]
        return OffsetFetchRequest(group_id=group, topics=None if all_topics else topics)
    wanted = [
        OffsetFetchRequestTopics(name=name, partition_indexes=[index])
        if version < 10
        else OffsetFetchRequestTopics(topic_id=topic_id_of(name), partition_indexes=[index])
        for name, index in places
    ]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None if all_topics else wanted)])


def told(response: Any, version: int = 8) -> dict[tuple[str, int], ErrorCode]:
    """(topic, partition) -> error code, in the order of the answer; topics by id are named again."""
    return {
        (topic.name if version < 10 else _name(topic.topic_id), part.partition_index): ErrorCode(part.error_code)
        for topic in response.topics
        for part in topic.partitions
    }


def _name(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\1").decode()


@pytest.mark.parametrize("version", range(1, 11))
def test_a_commit_is_stored_and_fetched_in_every_version(broker: Broker, version: int) -> None:
    committed = broker.ask(commit(version, ("visits", 1)), version)
    assert told(committed, version) == {("visits", 1): NONE}

    answer = broker.ask(fetch(version, ("visits", 1), ("visits", 0)), version)

    group = answer if version < 8 else answer.groups[0]
    first, second = (topic.partitions[0] for topic in group.topics)
    assert (first.committed_offset, first.metadata, first.error_code) == (7, "m", 0)
    assert (second.committed_offset, second.metadata, second.error_code) == (-1, "", 0)
    assert first.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_unknown_partitions_and_topics_are_refused_one_by_one(broker: Broker, version: int) -> None:
    no_topic = UNKNOWN if version < 10 else ErrorCode.UNKNOWN_TOPIC_ID
    asked = commit(version, ("visits", 0), ("visits", 9), ("nowhere", 0), ("clicks", 0))

    answer = broker.ask(asked, version)

    assert told(answer, version) == {
        ("visits", 9): UNKNOWN,
        ("visits", 0): NONE,
        ("nowhere", 0): no_topic,
        ("clicks", 0): NONE,
    }
    assert stage_of(broker).offsets("g") == {("visits", 0): 7, ("clicks", 0): 7}


def test_many_unknown_partitions_are_refused_in_reasonable_time(broker: Broker) -> None:
    asked = commit(8, *(("visits", index) for index in range(20_000)))

    answer = broker.ask(asked, 8)

    assert sum(code is UNKNOWN for code in told(answer).values()) == 19_998


def test_a_commit_of_nothing_that_exists_does_not_reach_the_coordinator(broker: Broker) -> None:
    assert told(broker.ask(commit(8, ("nowhere", 0)), 8)) == {("nowhere", 0): UNKNOWN}
    groups: Any = broker.services.groups
    assert groups.asked == []


def test_who_may_not_read_the_group_or_a_topic_may_not_commit(broker: Broker) -> None:
    asked = commit(8, ("visits", 0), ("clicks", 0))

    no_group = broker.ask(asked, 8, authorizer=Denying((Operation.READ, "g")))
    no_topic = broker.ask(asked, 8, authorizer=Denying((Operation.READ, "clicks")))

    assert told(no_group) == {("visits", 0): NO_GROUP, ("clicks", 0): NO_GROUP}
    assert told(no_topic) == {("clicks", 0): NO_TOPIC, ("visits", 0): NONE}


def test_the_groups_error_is_said_for_every_partition(broker: Broker) -> None:
    groups: Any = broker.services.groups
    groups.stage.shard.groups.put(FakeGroup("g", refuse=ErrorCode.ILLEGAL_GENERATION))

    answer = broker.ask(commit(8, ("visits", 0), ("visits", 1), ("nowhere", 0)), 8)

    assert told(answer) == {
        ("nowhere", 0): UNKNOWN,
        ("visits", 0): ErrorCode.ILLEGAL_GENERATION,
        ("visits", 1): ErrorCode.ILLEGAL_GENERATION,
    }


def test_a_commit_that_is_too_large_for_the_log_says_so(broker: Broker) -> None:
    stage_of(broker).fail_next_append(ErrorCode.UNKNOWN_SERVER_ERROR, cause=ErrorCode.MESSAGE_TOO_LARGE)

    assert told(broker.ask(commit(8, ("visits", 0)), 8)) == {("visits", 0): ErrorCode.INVALID_COMMIT_OFFSET_SIZE}


@pytest.mark.parametrize("version", [2, 5, 7, 8, 9, 10])
def test_all_topics_that_may_be_described_are_told(broker: Broker, version: int) -> None:
    broker.ask(commit(8, ("visits", 1), ("clicks", 0)), 8)
    denying = Denying((Operation.DESCRIBE, "clicks"))

    answer = broker.ask(fetch(version, all_topics=True), version, authorizer=denying)

    group = answer if version < 8 else answer.groups[0]
    assert told(group, version) == {("visits", 1): NONE}


@pytest.mark.parametrize("version", [1, 2, 8, 10])
def test_topics_that_may_not_be_described_are_refused_one_by_one(broker: Broker, version: int) -> None:
    broker.ask(commit(8, ("visits", 1), ("clicks", 0)), 8)
    denying = Denying((Operation.DESCRIBE, "clicks"))

    answer = broker.ask(fetch(version, ("clicks", 0), ("visits", 1)), version, authorizer=denying)

    group = answer if version < 8 else answer.groups[0]
    assert told(group, version) == {("visits", 1): NONE, ("clicks", 0): NO_TOPIC}


def test_a_topic_id_that_nobody_has_is_said_to_be_unknown(broker: Broker) -> None:
    answer = broker.ask(fetch(10, ("nowhere", 0)), 10)

    assert told(answer.groups[0], 10) == {("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize("version", range(1, 11))
def test_a_groups_error_stands_where_the_version_has_a_place_for_it(broker: Broker, version: int) -> None:
    groups: Any = broker.services.groups
    groups.refuse = BrokerError(ErrorCode.NOT_COORDINATOR)

    answer = broker.ask(fetch(version, ("visits", 0)), version)

    if version == 1:
        assert told(answer) == {("visits", 0): ErrorCode.NOT_COORDINATOR}
    else:
        group = answer if version < 8 else answer.groups[0]
        assert group.error_code == ErrorCode.NOT_COORDINATOR
        assert group.topics == []


def test_each_group_is_answered_by_itself_in_the_order_asked(broker: Broker) -> None:
    broker.ask(commit(8, ("visits", 0), group="one"), 8)
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in ("two", "one")])

    both = broker.ask(asked, 8)
    denied = broker.ask(asked, 8, authorizer=Denying((Operation.DESCRIBE, "two")))
    nothing = broker.ask(OffsetFetchRequest(groups=[]), 8)

    assert [(each.group_id, each.error_code, told(each)) for each in both.groups] == [
        ("two", 0, {}),
        ("one", 0, {("visits", 0): NONE}),
    ]
    assert [each.error_code for each in denied.groups] == [NO_GROUP, 0]
    assert nothing.groups == []


def test_who_requires_stable_offsets_is_told_of_unstable_ones(broker: Broker) -> None:
    stage_of(broker).txn_commit({("visits", 0): 9}, Producer(5, 0), "g")
    asked = fetch(7, ("visits", 0))
    asked.require_stable = True

    assert told(broker.ask(asked, 7)) == {("visits", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}


def delete(*places: tuple[str, int], group: str = "g") -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for name, index in places
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def test_offsets_are_deleted_where_that_is_allowed(broker: Broker) -> None:
    broker.ask(commit(8, ("visits", 0), ("visits", 1), ("clicks", 0)), 8)
    asked = delete(("visits", 0), ("clicks", 0), ("nowhere", 3))

    answer = broker.ask(asked, 0, authorizer=Denying((Operation.READ, "clicks")))

    assert answer.error_code == 0
    assert told(answer) == {("clicks", 0): NO_TOPIC, ("nowhere", 3): UNKNOWN, ("visits", 0): NONE}
    assert stage_of(broker).offsets("g") == {("visits", 1): 7, ("clicks", 0): 7}


def test_an_error_of_the_group_stands_for_the_whole_deletion(broker: Broker) -> None:
    for asked, authorizer, code in (
        (delete(("visits", 0)), None, ErrorCode.GROUP_ID_NOT_FOUND),
        (delete(("visits", 0)), Denying((Operation.DELETE, "g")), NO_GROUP),
        (delete(("visits", 0), group=""), None, ErrorCode.INVALID_GROUP_ID),
    ):
        answer = broker.ask(asked, 0, authorizer=authorizer)
        assert (answer.error_code, answer.topics) == (code, [])


def txn_commit(version: int, *places: tuple[str, int], group: str = "g") -> TxnOffsetCommitRequest:
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata=None)
            ],
        )
        for name, index in places
    ]
    return TxnOffsetCommitRequest(
        transactional_id="t", group_id=group, producer_id=5, producer_epoch=1, member_id="", topics=topics
    )


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_commit_is_admitted_then_stored(broker: Broker, version: int) -> None:
    answer = broker.ask(txn_commit(version, ("visits", 0), ("nowhere", 0)), version)

    assert told(answer) == {("nowhere", 0): UNKNOWN, ("visits", 0): NONE}
    transactions: Any = broker.services.transactions
    assert transactions.asked == [("t", Producer(5, 1), 1, version)]
    stage_of(broker).end_transaction(Producer(5, 1), committed=True)
    assert stage_of(broker).offsets("g") == {("visits", 0): 7}


def test_a_commit_that_is_not_admitted_is_not_stored(broker: Broker) -> None:
    broker.services.transactions = StagedTransactions(ErrorCode.TRANSACTION_ABORTABLE)

    answer = broker.ask(txn_commit(4, ("visits", 0)), 4)

    assert told(answer) == {("visits", 0): ErrorCode.TRANSACTION_ABORTABLE}
    assert stage_of(broker).log == []


@pytest.mark.parametrize(
    ("operation", "name", "code"),
    [
        (Operation.WRITE, "t", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, "g", NO_GROUP),
        (Operation.READ, "visits", NO_TOPIC),
    ],
)
def test_a_commit_whose_right_is_taken_away_while_its_coordinator_is_asked_is_not_stored(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, operation: Operation, name: str, code: ErrorCode
) -> None:
    authorizer = Denying()
    admit = StagedTransactions.admit_offsets

    def revoked_meanwhile(*arguments: Any) -> None:
        authorizer._denied = ((operation, name),)
        admit(*arguments)

    monkeypatch.setattr(StagedTransactions, "admit_offsets", revoked_meanwhile)

    answer = broker.ask(txn_commit(4, ("visits", 0)), 4, authorizer=authorizer)

    assert told(answer) == {("visits", 0): code}
    assert stage_of(broker).log == []


def test_what_a_transactional_commit_was_admitted_with_goes_with_its_records(broker: Broker) -> None:
    broker.services.transactions = StagedTransactions(guard=77)
    groups: Any = broker.services.groups
    decided: list[Result] = []

    def run(_group_id: str, operation: Any, refused: Any) -> None:
        decided.append(operation(stage_of(broker).shard))
        refused(BrokerError(ErrorCode.NOT_COORDINATOR))

    groups.run = run
    broker.ask(txn_commit(3, ("visits", 0)), 3)

    assert [(result.producer, result.guard) for result in decided] == [(Producer(5, 1), 77)]


def test_a_commit_whose_group_fails_once_it_is_admitted_is_answered(broker: Broker) -> None:
    """The coordinator that admitted it brings the answer: what is raised then reaches nobody."""
    admitting: list[Any] = []
    transactions: Any = broker.services.transactions
    transactions.admit_offsets = lambda *asked: admitting.append(asked[-1])
    groups: Any = broker.services.groups
    groups.run = lambda *_: 1 // 0
    outcomes: list[Any] = []
    connection: Any = FakeConnection()
    context = Context(connection, memoryview(b""), 0, 0)
    context.api_version, context.client_id = 5, "a-client"

    promise = txn_offset_commit.txn_offset_commit(txn_commit(5, ("visits", 0)), context, broker.services)
    assert isinstance(promise, Promise)
    promise.watch(lambda response, error: outcomes.append((response, type(error))))
    admitting[0](ErrorCode.NONE, 7)

    assert outcomes == [(None, ZeroDivisionError)]


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_old_producers_are_not_told_of_loading(broker: Broker, version: int, code: ErrorCode) -> None:
    groups: Any = broker.services.groups
    groups.refuse = BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert told(broker.ask(txn_commit(version, ("visits", 0)), version)) == {("visits", 0): code}


def test_a_transactional_commit_needs_all_three_permissions(broker: Broker) -> None:
    for denied, code in (
        ((Operation.WRITE, "t"), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ((Operation.READ, "g"), NO_GROUP),
        ((Operation.READ, "visits"), NO_TOPIC),
    ):
        answer = broker.ask(txn_commit(3, ("visits", 0)), 3, authorizer=Denying(denied))
        assert told(answer) == {("visits", 0): code}
    assert told(broker.ask(txn_commit(3, ("visits", 0), group=""), 3)) == {("visits", 0): ErrorCode.INVALID_GROUP_ID}
