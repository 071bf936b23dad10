"""Calls that several brokers have a part in, while some of these die, come back, and hand over what they had."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.client.admin import ItemErrors, NewTopic, OffsetSpec, TopicPartition, TransactionListing, TransactionState
from kavka.client.admin.areas.groups import GroupsArea
from kavka.client.admin.areas.partitions import PartitionsArea
from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.areas.transactions import TransactionsArea
from kavka.client.admin.operations.topics import create_topics, delete_topics
from kavka.client.api_errors import (
    BrokerNotAvailableError,
    DisconnectedError,
    KafkaTimeoutError,
    TopicExistsError,
    UnknownServerError,
)
from kavka.client.node import Node
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kavka.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kavka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kavka.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kavka.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kavka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kavka.protocol.messages.list_transactions import (
    TransactionState as ListedTransaction,
)
from tests.support.admin_stage import SILENCE, AdminStage, Said, nodes_of

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))
NOT_CONTROLLER, TIMED_OUT, THROTTLED, EXISTS, UNKNOWN = 41, 7, 89, 36, 3


def listed(node: Node) -> ListGroupsResponse:
    row = ListedGroup(group_id=f"g{node.id}", protocol_type="consumer", group_state="Stable", group_type="classic")
    return ListGroupsResponse(error_code=0, groups=[row])


def silent_once(stage: AdminStage, broker_id: int, says: Callable[[Node, Any], Said]) -> Callable[[Node, Any], Said]:
    """Brokers that answer, but for the first request to one of them."""

    def broker(node: Node, request: Any) -> Said:
        first = nodes_of(stage.network.requests(type(request))).count(broker_id) == 1
        return SILENCE if node.id == broker_id and first else says(node, request)

    return broker


def test_a_broker_that_restarts_while_all_are_listed_is_asked_again_and_no_other_is() -> None:
    stage = AdminStage()
    stage.network.answer(ListGroupsRequest, silent_once(stage, 2, lambda node, _: listed(node)))
    stage.later(1_000, lambda: stage.kill(2, heir=3))
    stage.later(9_000, lambda: stage.revive(2))

    groups = stage.area(GroupsArea).list_groups()

    assert sorted(group.group_id for group in groups) == ["g1", "g2", "g3"]
    assert sorted(nodes_of(stage.network.requests(ListGroupsRequest))) == [1, 2, 2, 3]


def test_a_broker_that_leaves_while_all_are_listed_keeps_nothing_of_the_others_back() -> None:
    stage = AdminStage()
    stage.network.answer(ListGroupsRequest, silent_once(stage, 2, lambda node, _: listed(node)))
    stage.later(1_000, lambda: stage.kill(2, heir=3))
    stage.later(2_000, lambda: stage.nodes.pop(2))

    with pytest.raises(ItemErrors) as failed:
        stage.area(GroupsArea).list_groups(timeout_ms=8_000)

    assert failed.value.results.keys() == {1, 3}
    error = failed.value.errors[2]
    assert isinstance(error, KafkaTimeoutError)
    assert isinstance(error.__cause__, BrokerNotAvailableError)
    assert "broker 2 is not known to the cluster" in str(error)
    # It is looked for as long as there is time, but not each moment.
    assert stage.metadata.updates < 100


def test_all_are_listed_while_one_after_the_other_restarts() -> None:
    stage = AdminStage()

    def broker(node: Node, _request: ListTransactionsRequest) -> Said:
        if nodes_of(stage.network.requests(ListTransactionsRequest)).count(node.id) == 1:
            return SILENCE
        row = ListedTransaction(transactional_id=f"x{node.id}", producer_id=node.id, transaction_state="Ongoing")
        return ListTransactionsResponse(error_code=0, unknown_state_filters=[], transaction_states=[row])

    stage.network.answer(ListTransactionsRequest, broker)
    for turn, broker_id in enumerate((1, 2, 3)):
        stage.later(1_000 + 3_000 * turn, partial(stage.kill, broker_id, heir=1))
        stage.later(3_000 + 3_000 * turn, partial(stage.revive, broker_id))

    found = stage.area(TransactionsArea).list_transactions()

    assert sorted(found) == [TransactionListing(f"x{each}", each, TransactionState.ONGOING) for each in (1, 2, 3)]


def cut(node: Node, request: DeleteRecordsRequest) -> Said:
    rows = [
        DeleteRecordsPartitionResult(partition_index=row.partition_index, low_watermark=node.id, error_code=0)
        for row in request.topics[0].partitions
    ]
    return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=rows)])


@pytest.mark.parametrize("offset", [7, -1])
def test_what_a_leader_that_dies_was_asked_goes_to_the_next_one_if_it_may(offset: int) -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1, 2, 3]}
    stage.network.answer(DeleteRecordsRequest, silent_once(stage, 2, cut))
    stage.later(1_000, lambda: stage.kill(2, heir=3))
    wanted = dict.fromkeys((P0, P1, P2), offset)

    if offset == 7:
        assert stage.area(PartitionsArea).delete_records(wanted) == {P0: 1, P1: 3, P2: 3}
        assert nodes_of(stage.network.requests(DeleteRecordsRequest)) == [1, 2, 3, 3]
        return
    with pytest.raises(ItemErrors) as failed:
        stage.area(PartitionsArea).delete_records(wanted)
    assert failed.value.results == {P0: 1, P2: 3}
    assert isinstance(failed.value.errors[P1], DisconnectedError)
    assert nodes_of(stage.network.requests(DeleteRecordsRequest)) == [1, 2, 3]


def test_a_leader_that_cannot_be_reached_holds_up_its_own_partitions_alone() -> None:
    """Its partitions wait for an election; those of others are answered before."""
    stage = AdminStage()
    stage.leaders = {"t": [1, 2, 3]}
    stage.network.unreachable = {2}
    answered: dict[int, float] = {}

    def broker(node: Node, request: ListOffsetsRequest) -> Said:
        rows = []
        for row in request.topics[0].partitions:
            answered[row.partition_index] = stage.now_ms
            rows.append(
                ListOffsetsPartitionResponse(
                    partition_index=row.partition_index,
                    error_code=0,
                    old_style_offsets=[],
                    timestamp=-1,
                    offset=node.id,
                )
            )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=rows)])

    stage.network.answer(ListOffsetsRequest, broker)
    began_ms = stage.now_ms
    stage.later(6_000, lambda: stage.kill(2, heir=1))

    found = stage.area(PartitionsArea).list_offsets(dict.fromkeys((P0, P1, P2), OffsetSpec.LATEST))

    assert {partition: each.offset for partition, each in found.items()} == {P0: 1, P1: 1, P2: 3}
    assert max(answered[0], answered[2]) == began_ms
    assert answered[1] >= began_ms + 6_000


def test_groups_go_on_with_the_coordinator_that_takes_over() -> None:
    """It loads them first; what the dead one had deleted is gone then."""
    stage = AdminStage()
    stage.coordinators = {"g": 2, "h": 2, "i": 3}
    loads = 2

    def coordinator(node: Node, request: DeleteGroupsRequest) -> Said:
        nonlocal loads
        codes = {"g": 69, "h": 0, "i": 0}
        if node.id == 1 and loads:
            loads -= 1
            codes = dict.fromkeys(codes, 14)
        rows = [DeletableGroupResult(group_id=each, error_code=codes[each]) for each in request.groups_names]
        return DeleteGroupsResponse(results=rows)

    stage.network.answer(DeleteGroupsRequest, silent_once(stage, 2, coordinator))
    stage.later(1_000, lambda: stage.kill(2, heir=1))

    assert stage.area(GroupsArea).delete_groups(["g", "h", "i"]) == {"g": None, "h": None, "i": None}
    asked = [(each.node.id, each.request.groups_names) for each in stage.network.requests(DeleteGroupsRequest)]
    assert asked == [(2, ["g", "h"]), (3, ["i"]), (1, ["g", "h"]), (1, ["g", "h"]), (1, ["g", "h"])]


def created(request: CreateTopicsRequest, codes: dict[str, int]) -> CreateTopicsResponse:
    rows = [CreatableTopicResult(name=topic.name, error_code=codes.get(topic.name, 0)) for topic in request.topics]
    return CreateTopicsResponse(topics=rows)


def test_a_controller_that_moves_and_then_dies_has_what_was_left_done_once() -> None:
    stage = AdminStage()

    def controller(node: Node, request: CreateTopicsRequest) -> Said:
        if node.id == 1:
            stage.controller_id = 2
            stage.later(2_000, lambda: stage.kill(2, heir=3))
            return created(request, {"b": NOT_CONTROLLER})
        return SILENCE

    stage.network.answer(CreateTopicsRequest, controller)

    with pytest.raises(ItemErrors) as failed:
        stage.area(TopicsArea).create_topics([NewTopic(name, 1, 1) for name in "abc"])

    assert failed.value.results.keys() == {"a", "c"}
    assert isinstance(failed.value.errors["b"], DisconnectedError)
    assert nodes_of(stage.network.requests(CreateTopicsRequest)) == [1, 2]


def test_a_controller_that_dies_while_it_deletes_leaves_the_rest_to_the_next_one() -> None:
    stage = AdminStage()
    stage.controller_id = 2

    def controller(_node: Node, request: DeleteTopicsRequest) -> Said:
        # The first one had come as far as "a".
        rows = [
            DeletableTopicResult(name=each.name, error_code=UNKNOWN if each.name == "a" else 0)
            for each in request.topics
        ]
        return DeleteTopicsResponse(responses=rows)

    stage.network.answer(DeleteTopicsRequest, silent_once(stage, 2, controller))
    stage.later(1_000, lambda: stage.kill(2, heir=3))

    assert stage.area(TopicsArea).delete_topics(["a", "b"]) == {"a": None, "b": None}
    assert nodes_of(stage.network.requests(DeleteTopicsRequest)) == [2, 3]


def test_a_cluster_that_is_cut_off_for_a_while_is_waited_for() -> None:
    stage = AdminStage()
    stage.network.unreachable = {1, 2, 3}
    stage.leaders = {"t": [1]}
    began_ms = stage.now_ms
    stage.later(10_000, stage.network.unreachable.clear)

    assert stage.area(TopicsArea).list_topics().keys() == {"t"}
    assert began_ms + 10_000 <= stage.now_ms < began_ms + 12_000


FAULTS = ("done", "moved", "lost", "done and lost", "half", "late", "done late", "throttled", "left out")


class Controllers:
    """Whoever is the controller now, each answer with the next fault: topics by name, and how often each was asked."""

    def __init__(self, stage: AdminStage, faults: list[str]) -> None:
        self.stage = stage
        self.faults = faults
        self.topics: set[str] = set()
        self.changes: Counter[str] = Counter()
        self.asked_in_doubt: list[str] = []
        """What was asked for again after nobody had said whether it had been done."""
        self._in_doubt: set[str] = set()

    def answer(self, names: list[str], change: Callable[[str], int]) -> dict[str, int] | None:
        """Codes by name; None for none at all."""
        fault = self.faults.pop(0) if self.faults else "done"
        self.asked_in_doubt += [name for name in names if name in self._in_doubt]
        doing = names if fault.startswith("done") or fault == "left out" else names[:1] if fault == "half" else []
        codes = {name: change(name) for name in doing}
        if fault in ("moved", "lost", "done and lost", "half"):
            self.stage.controller_id = self.stage.controller_id % 3 + 1
        if fault in ("lost", "done and lost", "late", "done late", "left out"):
            self._in_doubt.update(names)
        if fault.endswith("lost"):
            return None
        if fault == "left out":
            return {}
        if fault.endswith("late"):
            return dict.fromkeys(names, TIMED_OUT)
        if fault in ("moved", "half"):
            return {**dict.fromkeys(names, NOT_CONTROLLER), **codes}
        return dict.fromkeys(names, THROTTLED) if fault == "throttled" else codes

    def create(self, _node: Node, request: CreateTopicsRequest) -> Said:
        def change(name: str) -> int:
            if name in self.topics:
                return EXISTS
            self.topics.add(name)
            self.changes[name] += 1
            return 0

        codes = self.answer([topic.name for topic in request.topics], change)
        if codes is None:
            return DisconnectedError("lost")
        rows = [CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return CreateTopicsResponse(topics=rows, throttle_time_ms=200)

    def delete(self, _node: Node, request: DeleteTopicsRequest) -> Said:
        def change(name: str) -> int:
            if name not in self.topics:
                return UNKNOWN
            self.topics.remove(name)
            self.changes[name] += 1
            return 0

        codes = self.answer([topic.name or "" for topic in request.topics], change)
        if codes is None:
            return DisconnectedError("lost")
        rows = [DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return DeleteTopicsResponse(responses=rows, throttle_time_ms=200)


@given(st.lists(st.sampled_from(FAULTS), max_size=12))
def test_whatever_controllers_do_topics_are_created_once_or_nobody_knows(faults: list[str]) -> None:
    stage = AdminStage()
    controllers = Controllers(stage, faults)
    stage.network.answer(CreateTopicsRequest, controllers.create)

    call = stage.run(create_topics({name: NewTopic(name, 1, 1) for name in "abc"}, False, True))

    assert call.results.keys() | call.errors.keys() == set("abc")
    assert call.results.keys() & call.errors.keys() == set()
    assert controllers.asked_in_doubt == []
    assert all(controllers.changes[name] == 1 for name in call.results)
    for error in call.errors.values():
        assert isinstance(error, DisconnectedError | KafkaTimeoutError | UnknownServerError), error
        assert not isinstance(error, TopicExistsError), "it is the one that was created"


@given(st.lists(st.sampled_from(FAULTS), max_size=12))
def test_whatever_controllers_do_topics_are_deleted_and_said_to_be(faults: list[str]) -> None:
    stage = AdminStage()
    controllers = Controllers(stage, [fault for fault in faults if fault != "left out"])
    controllers.topics |= set("abc")
    stage.network.answer(DeleteTopicsRequest, controllers.delete)

    call = stage.run(delete_topics(list("abc"), True))

    assert call.errors == {}
    assert call.results == dict.fromkeys("abc")
    assert controllers.topics == set()
    assert controllers.changes == Counter("abc")
