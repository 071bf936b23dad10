"""Requests to the controller, whoever that is."""

import threading
from collections.abc import Generator

import pytest

from kavka.broker.interbroker import ControllerChannel
from kavka.broker.interbroker.controller_channel import MAX_QUEUED
from kavka.client import Node, RequestBuilder
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kavka.protocol.messages.alter_partition import AlterPartitionRequest
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kavka.protocol.schema import Request
from tests.support.interbroker_stage import SETTINGS, InterBrokerStage
from tests.support.scripted_broker import TIMEOUT_S, ScriptedBroker, Visitor

NOT_CONTROLLER = 41


class Known:
    """Who is the controller, as far as this broker knows."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.was_asked = threading.Event()

    def __call__(self) -> Node | None:
        self.was_asked.set()
        return self.node


@pytest.fixture
def stage() -> Generator[InterBrokerStage, None, None]:
    with InterBrokerStage() as stage:
        yield stage


@pytest.fixture
def known() -> Known:
    return Known()


@pytest.fixture
def channel(stage: InterBrokerStage, known: Known) -> ControllerChannel:
    return ControllerChannel(stage.inter_broker, known, lane="test", timeout_ms=30_000)


def ids(broker_id: int = 1) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=broker_id)


def block(error_code: int = 0, first: int = 0) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error_code, producer_id_start=first, producer_id_len=1000)


def serve(visitor: Visitor, broker_id: int, response: AllocateProducerIdsResponse) -> None:
    asked = visitor.asked()
    assert asked.request.broker_id == broker_id
    visitor.answer(asked, response)


def elected(stage: InterBrokerStage, known: Known, broker_id: int) -> ScriptedBroker:
    controller = stage.broker(broker_id)
    known.node = controller.node
    return controller


def test_the_controller_answers_in_order(stage: InterBrokerStage, known: Known, channel: ControllerChannel) -> None:
    controller = elected(stage, known, 1)
    for broker_id in (1, 2, 3):
        channel.send(ids(broker_id), stage.answers.put)
    visitor = controller.accept()
    for broker_id in (1, 2, 3):
        serve(visitor, broker_id, block(first=broker_id))
        assert stage.answer().producer_id_start == broker_id


def test_who_is_not_the_controller_is_asked_no_more_once_another_is_known(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    former, new = stage.broker(1), stage.broker(2)
    known.node = former.node
    channel.send(ids(), stage.answers.put)
    visitor = former.accept()
    for _ in range(3):
        serve(visitor, 1, block(NOT_CONTROLLER))
    asked = visitor.asked()
    known.node = new.node
    visitor.answer(asked, block(NOT_CONTROLLER))
    serve(new.accept(), 1, block(first=7000))
    assert stage.answer().producer_id_start == 7000
    assert stage.answers.empty()


def test_an_answer_for_one_of_many_counts_too(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    controller = elected(stage, known, 1)
    channel.send(CreateTopicsRequest(topics=[], timeout_ms=1), stage.answers.put)
    visitor = controller.accept()
    for code in (NOT_CONTROLLER, 0):
        result = CreatableTopicResult(name="t", error_code=code, error_message=None)
        visitor.answer(visitor.asked(), CreateTopicsResponse(topics=[result]))
    assert stage.answer().topics[0].error_code == 0


@pytest.mark.parametrize("how", ["closed", "lying"])
def test_a_request_that_got_no_answer_is_sent_again(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel, how: str
) -> None:
    controller = elected(stage, known, 1)
    channel.send(ids(1), stage.answers.put)
    channel.send(ids(2), stage.answers.put)
    visitor = controller.accept()
    asked = visitor.asked()
    if how == "closed":
        visitor.socket.close()
    else:
        visitor.answer(asked, block(), correlation_id=asked.header.correlation_id + 1)
    visitor = controller.accept()
    for broker_id in (1, 2):
        serve(visitor, broker_id, block(first=broker_id))
        assert stage.answer().producer_id_start == broker_id


def test_a_request_waits_until_a_controller_is_known(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    channel.send(ids(), stage.answers.put)
    assert known.was_asked.wait(TIMEOUT_S)
    controller = elected(stage, known, 1)
    serve(controller.accept(), 1, block(first=5))
    assert stage.answer().producer_id_start == 5


def test_a_controller_that_does_not_answer_is_left_for_a_new_one(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    frozen = elected(stage, known, 1)
    channel.send(ids(), stage.answers.put)
    visitor = frozen.accept()
    visitor.asked()
    new = elected(stage, known, 2)
    serve(new.accept(), 1, block(first=5))
    assert stage.answer().producer_id_start == 5
    assert visitor.closed_by_peer()


def test_a_controller_that_cannot_be_reached_is_left_for_a_new_one(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    dead = elected(stage, known, 1)
    dead.stop_listening()
    channel.send(ids(), stage.answers.put)
    stage.turn()
    new = elected(stage, known, 2)
    serve(new.accept(), 1, block(first=5))
    assert stage.answer().producer_id_start == 5


@pytest.mark.parametrize("is_known", [False, True])
def test_a_request_whose_time_is_up_is_answered_so(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel, is_known: bool
) -> None:
    if is_known:
        elected(stage, known, 1)
    channel.send(ids(1), stage.answers.put, timeout_ms=20)
    channel.send(ids(2), stage.answers.put, timeout_ms=25)
    for _ in range(2):
        assert stage.answer().code is ErrorCode.REQUEST_TIMED_OUT


def test_a_controller_that_is_too_old_is_not_asked_and_the_next_request_is_sent(known: Known) -> None:
    with InterBrokerStage(SETTINGS._replace(discover_versions=True)) as stage:
        channel = ControllerChannel(stage.inter_broker, known, lane="test", timeout_ms=30_000)
        controller = elected(stage, known, 1)
        versions: list[int] = []

        def build(version: int) -> Request:
            versions.append(version)
            return AlterPartitionRequest(broker_id=1, topics=[])

        channel.send(RequestBuilder(56, build), stage.answers.put, versions=(2, 3))
        channel.send(ids(), stage.answers.put)
        visitor = controller.accept()
        visitor.serve_versions({56: (0, 1), 67: (0, 0)})
        refusal = stage.answer()
        assert isinstance(refusal, BrokerError)
        assert refusal.code is ErrorCode.UNSUPPORTED_VERSION
        assert versions == []
        serve(visitor, 1, block())
        assert stage.answer().error_code == 0


def test_no_more_requests_wait_than_there_is_room_for(stage: InterBrokerStage, channel: ControllerChannel) -> None:
    waiting: list[object] = []
    for _ in range(MAX_QUEUED):
        channel.send(ids(), waiting.append)
    channel.send(ids(), stage.answers.put)
    assert stage.answer().code is ErrorCode.REQUEST_TIMED_OUT
    assert waiting == []


def test_what_waits_when_the_channel_is_closed_is_answered_once(
    stage: InterBrokerStage, known: Known, channel: ControllerChannel
) -> None:
    controller = elected(stage, known, 1)
    channel.send(ids(1), stage.answers.put)
    visitor = controller.accept()
    asked = visitor.asked()
    channel.send(ids(2), stage.answers.put)

    channel.close()

    for _ in range(2):
        assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    visitor.answer(asked, block())
    stage.turn()
    channel.send(ids(3), stage.answers.put)
    assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    assert stage.answers.empty()
