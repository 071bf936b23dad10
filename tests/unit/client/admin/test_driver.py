"""The generic driver: items to brokers, answers to outcomes, and what is asked again."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

from kavka.client.admin.areas.area import settled
from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.admin.operations.partitions import delete_records, list_reassignments
from kavka.client.admin.operations.topics import create_topics, delete_topics
from kavka.client.admin.types.topics import NewTopic
from kavka.client.api_errors import (
    AnswerTimeoutError,
    BadAnswerError,
    ClientClosedError,
    ClientDiedError,
    ClusterAuthorizationError,
    DisconnectedError,
    KafkaTimeoutError,
    NotControllerError,
    TopicExistsError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kavka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kavka.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.support.admin_stage import SILENCE, AdminStage, InlineThread, Said, in_turn, nodes_of

NEW = {"t": NewTopic("t", 1, 1)}
P0 = TopicPartition("t", 0)


def created(*rows: tuple[str, int], throttle_time_ms: int = 0) -> CreateTopicsResponse:
    topics = [CreatableTopicResult(name=name, error_code=code) for name, code in rows]
    return CreateTopicsResponse(topics=topics, throttle_time_ms=throttle_time_ms)


def deleted(*rows: tuple[str, int]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[DeletableTopicResult(name=name, error_code=code) for name, code in rows])


def cut(code: int = 0) -> Callable[[Node, DeleteRecordsRequest], Said]:
    """Does what it is asked for, or says why not."""

    def broker(node: Node, request: DeleteRecordsRequest) -> Said:
        topics = [
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=row.partition_index, low_watermark=row.offset + node.id, error_code=code
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DeleteRecordsResponse(topics=topics)

    return broker


def test_a_request_goes_to_the_controller_and_tells_how_long_it_may_take() -> None:
    stage = AdminStage()
    stage.controller_id = 2
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 0))))

    call = stage.run(create_topics(NEW, False, True), timeout_ms=5_000)

    assert call.errors == {}
    assert call.results["t"].name == "t"
    (asked,) = stage.network.requests(CreateTopicsRequest)
    assert asked.node.id == 2
    assert asked.request.timeout_ms == 5_000


def test_who_is_no_controller_any_more_is_left_for_the_next_one() -> None:
    stage = AdminStage()

    def broker(node: Node, _request: object) -> Said:
        stage.controller_id = 3
        return created(("t", 0 if node.id == 3 else 41))

    stage.network.answer(CreateTopicsRequest, broker)

    call = stage.run(create_topics(NEW, False, True))

    assert call.results.keys() == {"t"}
    assert nodes_of(stage.network.requests(CreateTopicsRequest)) == [1, 3]


def test_an_election_is_waited_for_with_growing_pauses() -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(*[created(("t", 41))] * 4, created(("t", 0))))

    call = stage.run(create_topics(NEW, False, True))

    assert call.results.keys() == {"t"}
    times = [asked.at_ms for asked in stage.network.requests(CreateTopicsRequest)]
    assert [after - before for before, after in pairwise(times)] == [100, 200, 400, 800]
    assert stage.metadata.updates == 5


def test_without_a_controller_the_time_limit_ends_it_and_says_why() -> None:
    stage = AdminStage()
    stage.controller_id = -1

    call = stage.run(create_topics(NEW, False, True), timeout_ms=700)

    error = call.errors["t"]
    assert isinstance(error, KafkaTimeoutError)
    assert isinstance(error.__cause__, NotControllerError)
    assert "the controller could not be asked in time" in str(error)
    assert stage.now_ms == 1_000_700


def test_what_is_refused_is_not_asked_again() -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 36))))

    call = stage.run(create_topics(NEW, False, True))

    assert isinstance(call.errors["t"], TopicExistsError)
    assert len(stage.network.asked) == 1


def test_only_what_is_left_is_asked_again() -> None:
    stage = AdminStage()
    topics = {name: NewTopic(name, 1, 1) for name in ("a", "b", "c")}
    stage.network.answer(CreateTopicsRequest, in_turn(created(("a", 0), ("b", 41), ("c", 36)), created(("b", 0))))

    call = stage.run(create_topics(topics, False, True))

    assert call.results.keys() == {"a", "b"}
    assert call.errors.keys() == {"c"}
    first, second = stage.network.requests(CreateTopicsRequest)
    assert [topic.name for topic in first.request.topics] == ["a", "b", "c"]
    assert [topic.name for topic in second.request.topics] == ["b"]


def test_a_throttled_item_waits_for_as_long_as_the_broker_says() -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 89), throttle_time_ms=3_000), created(("t", 0))))

    call = stage.run(create_topics(NEW, False, when_throttled=True))

    assert call.results.keys() == {"t"}
    first, second = stage.network.requests(CreateTopicsRequest)
    assert second.at_ms - first.at_ms == 3_000


def test_a_throttled_item_fails_at_once_where_that_is_asked_for() -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 89), throttle_time_ms=3_000)))

    call = stage.run(create_topics(NEW, False, when_throttled=False))

    assert call.errors["t"].code == 89


@pytest.mark.parametrize("error", [DisconnectedError("gone"), AnswerTimeoutError("late"), BadAnswerError("a lie")])
def test_what_is_not_to_be_done_twice_is_not_asked_twice(error: DisconnectedError) -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(error))

    call = stage.run(create_topics(NEW, False, True))

    assert call.errors == {"t": error}
    assert len(stage.network.asked) == 1


def test_what_may_be_done_twice_is_asked_again_after_a_disconnect() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteTopicsRequest, in_turn(DisconnectedError("gone"), deleted(("t", 0))))

    assert stage.run(delete_topics(["t"], True)).results == {"t": None}


def test_what_is_gone_after_a_disconnect_was_done_the_first_time() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteTopicsRequest, in_turn(DisconnectedError("gone"), deleted(("t", 3))))
    assert stage.run(delete_topics(["t"], True)).results == {"t": None}

    stage.network.answer(DeleteTopicsRequest, in_turn(deleted(("t", 3))))
    assert isinstance(stage.run(delete_topics(["t"], True)).errors["t"], UnknownTopicOrPartitionError)


def test_what_took_a_broker_too_long_is_asked_again_where_that_does_no_harm() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteTopicsRequest, in_turn(deleted(("t", 7)), deleted(("t", 3))))
    assert stage.run(delete_topics(["t"], True)).results == {"t": None}, "it was done after all"

    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 7)), created(("t", 0))))
    assert isinstance(stage.run(create_topics(NEW, False, True)).errors["t"], KafkaTimeoutError)


def test_a_silent_broker_ends_with_the_time_limit_and_its_late_answer_is_ignored() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteTopicsRequest, in_turn(SILENCE))
    call = stage.run(delete_topics(["t"], True), timeout_ms=1_500)

    error = call.errors["t"]
    assert isinstance(error, KafkaTimeoutError)
    assert "was not answered in time" in str(error)
    assert stage.now_ms == 1_001_500


@pytest.mark.parametrize(
    "answer", [created(), created(("other", 0)), created(("other", 36), ("more", 0))], ids=["empty", "other", "others"]
)
def test_an_item_that_the_answer_leaves_out_has_failed(answer: CreateTopicsResponse) -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(answer))

    call = stage.run(create_topics(NEW, False, True))

    assert call.results == {}
    assert call.errors.keys() == {"t"}
    assert isinstance(call.errors["t"], UnknownServerError)
    assert "leaves this out" in str(call.errors["t"])


def test_of_an_item_that_is_answered_twice_the_first_counts() -> None:
    stage = AdminStage()
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 36), ("t", 0))))

    assert isinstance(stage.run(create_topics(NEW, False, True)).errors["t"], TopicExistsError)


def test_a_broker_too_old_is_an_error_and_nothing_is_sent() -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.CREATE_TOPICS: (0, 3)}

    call = stage.run(create_topics({"t": NewTopic("t")}, False, True))

    assert isinstance(call.errors["t"], UnsupportedVersionError)
    assert stage.network.asked == []


def test_an_error_of_a_whole_answer_is_each_items() -> None:
    stage = AdminStage()

    def answer(code: int) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_code=code, error_message="no", topics=[])

    stage.network.answer(ListPartitionReassignmentsRequest, in_turn(answer(31)))
    assert isinstance(stage.run(list_reassignments(None)).errors[None], ClusterAuthorizationError)

    stage.network.answer(ListPartitionReassignmentsRequest, in_turn(answer(7), answer(41), answer(0)))
    assert stage.run(list_reassignments(None)).results == {None: {}}


def test_retries_are_limited_where_that_is_set() -> None:
    stage = AdminStage()
    stage.ports = stage.ports._replace(retries=2)
    stage.network.answer(CreateTopicsRequest, in_turn(created(("t", 41))))

    call = stage.run(create_topics(NEW, False, True))

    assert isinstance(call.errors["t"], NotControllerError)
    assert len(stage.network.requests(CreateTopicsRequest)) == 3


def test_a_closed_client_fails_what_it_has_not_done() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteTopicsRequest, in_turn(SILENCE))
    call = stage.begin(delete_topics(["t"], True))
    stage.machine.work(stage.now_ms)

    stage.machine.closed()
    late = stage.begin(delete_topics(["u"], True))

    assert isinstance(call.errors["t"], ClientClosedError)
    assert isinstance(late.errors["u"], ClientClosedError)
    assert stage.machine.is_idle()


def test_calls_go_on_side_by_side() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [-1]}
    stage.network.answer(DeleteRecordsRequest, cut())
    stage.network.answer(DeleteTopicsRequest, in_turn(deleted(("u", 0))))
    slow = stage.begin(delete_records({P0: 1}), timeout_ms=5_000)
    quick = stage.begin(delete_topics(["u"], True))

    stage.drive()

    assert quick.results == {"u": None}
    assert isinstance(slow.errors[P0], KafkaTimeoutError)


def test_one_items_error_is_raised_itself_and_several_together() -> None:
    error = TopicExistsError("there")
    with pytest.raises(TopicExistsError) as raised:
        settled("creating", {}, {"t": error})
    assert raised.value is error

    with pytest.raises(ItemErrors, match=r"creating: 1 of 2 failed: t: there") as some:
        settled("creating", {"u": 1}, {"t": error})
    assert some.value.errors == {"t": error}
    assert some.value.results == {"u": 1}
    assert some.value.code == TopicExistsError.code


def test_who_waits_while_the_clients_thread_dies_hears_of_what() -> None:
    stage = AdminStage()

    class Dying(InlineThread):
        failure = ClientDiedError("died: lost")

        def check(self) -> None:
            raise self.failure

        def submit(self, call: Callable[[], None]) -> None:
            call()
            stage.machine.closed()

    area = TopicsArea(cast(Any, Dying(stage)), stage.machine, stage.ports, 60_000)
    with pytest.raises(ClientDiedError, match="lost"):
        area.list_topics()
