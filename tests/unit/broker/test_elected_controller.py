"""Asking the controller, wherever it is: by a call while this broker is the one, else by a request."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.broker.interbroker.elected_controller import ElectedController
from kavka.client import RequestBuilder
from kavka.cluster.controller.requests import NewTopic, ProducerIdBlock, TopicResult
from kavka.cluster.interbroker_protocol import InterBrokerProtocol
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)
from kavka.protocol.messages.controlled_shutdown import ControlledShutdownResponse, RemainingPartition
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse

ME = 2
ID = b"\5" * 16
BLOCK = ProducerIdBlock(3000, 3999)


def block(first: int = 0, count: int = 0, code: int = 0) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=first, producer_id_len=count)


class OwnController:
    """This broker's candidate."""

    def __init__(self) -> None:
        self.is_active = False
        self.is_deposed = False
        self.asked: list[Any] = []

    def allocate_producer_id_block(self, broker_id: int, broker_epoch: int) -> Promise[ProducerIdBlock]:
        self.asked.append((broker_id, broker_epoch))
        promise: Promise[ProducerIdBlock] = Promise()
        if self.is_deposed:
            promise.fail(BrokerError(ErrorCode.NOT_CONTROLLER))
        else:
            promise.complete(BLOCK)
        return promise


class Channel:
    """A ControllerChannel whose answers a test gives."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.sent: list[tuple[Any, Any, float | None]] = []
        self.answer: Callable[[Any], None]
        self.is_closed = False

    def send(
        self,
        request: Any,
        on_answer: Callable[[Any], None],
        *,
        versions: Any = None,
        timeout_ms: float | None = None,
    ) -> None:
        self.sent.append((request, versions, timeout_ms))
        self.answer = on_answer

    def close(self) -> None:
        self.is_closed = True


class Rig:
    def __init__(self) -> None:
        self.own = OwnController()
        self.channels: dict[str, Channel] = {}
        self.epoch = 70
        own: Any = self.own
        self.elected = ElectedController(
            own, ME, lambda: self.epoch, InterBrokerProtocol("3.9"), self._open, timeout_ms=30_000
        )

    def _open(self, lane: str) -> Any:
        channel = self.channels[lane] = Channel(lane)
        return channel


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_controller_of_this_broker_is_called_while_it_is_the_one(rig: Rig) -> None:
    rig.own.is_active = True

    assert rig.elected.allocate_producer_id_block().result() == BLOCK

    assert rig.own.asked == [(ME, 70)]
    assert not rig.channels["producer-ids"].sent


@pytest.mark.parametrize("was_active", [False, True])
def test_another_one_is_asked_by_a_request_also_when_this_one_was_deposed_meanwhile(rig: Rig, was_active: bool) -> None:
    rig.own.is_active = rig.own.is_deposed = was_active
    channel = rig.channels["producer-ids"]

    promise = rig.elected.allocate_producer_id_block()
    ((request, _, timeout_ms),) = channel.sent
    channel.answer(block(5000, 1000))

    assert (request.broker_id, request.broker_epoch, timeout_ms) == (ME, 70, 30_000)
    assert promise.result() == ProducerIdBlock(5000, 5999)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (block(code=77), ErrorCode.STALE_BROKER_EPOCH),
        (block(code=9999), ErrorCode.UNKNOWN_SERVER_ERROR),
        (block(0, 0), ErrorCode.UNKNOWN_SERVER_ERROR),
        (block(-5, 9), ErrorCode.UNKNOWN_SERVER_ERROR),
        (BrokerError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.REQUEST_TIMED_OUT),
        (ValueError("no answer at all"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_no_block_of_producer_ids_is_an_error(rig: Rig, answer: Any, code: ErrorCode) -> None:
    promise = rig.elected.allocate_producer_id_block()
    rig.channels["producer-ids"].answer(answer)

    with pytest.raises(BrokerError) as refusal:
        promise.result()
    assert refusal.value.code is code


def test_topics_are_created_by_another_brokers_controller(rig: Rig) -> None:
    topics = [NewTopic("visits"), NewTopic("clicks", 4, 2, configs={"cleanup.policy": "compact"}), NewTopic("lost")]

    promise = rig.elected.create_topics(topics)
    ((request, versions, _),) = rig.channels["topics"].sent
    rig.channels["topics"].answer(
        CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name="clicks", error_code=36, error_message="it exists", configs=[]),
                CreatableTopicResult(name="visits", topic_id=ID, error_code=0, error_message=None, configs=[]),
            ]
        )
    )

    assert [(each.name, each.num_partitions, each.replication_factor) for each in request.topics] == [
        ("visits", -1, -1),
        ("clicks", 4, 2),
        ("lost", -1, -1),
    ]
    assert [(each.name, each.value) for each in request.topics[1].configs] == [("cleanup.policy", "compact")]
    # Before v4 counts must be given.
    assert versions == (4, 7)
    visits, clicks, lost = promise.result()
    assert visits == TopicResult("visits", ID, None)
    assert clicks.error is not None
    assert (clicks.error.code, clicks.error.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, "it exists")
    assert lost.error is not None
    assert lost.error.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_broker_that_stops_hears_what_it_still_leads(rig: Rig) -> None:
    promise = rig.elected.controlled_shutdown(2000)
    ((request, versions, timeout_ms),) = rig.channels["shutdown"].sent
    left = [RemainingPartition(topic_name="visits", partition_index=3)]
    rig.channels["shutdown"].answer(ControlledShutdownResponse(error_code=0, remaining_partitions=left))

    assert (request.broker_id, request.broker_epoch, versions, timeout_ms) == (ME, 70, (3, 3), 2000)
    assert promise.result() == [("visits", 3)]


def test_a_broker_without_a_session_hands_nothing_over(rig: Rig) -> None:
    rig.epoch = -1
    with pytest.raises(BrokerError) as refused:
        rig.elected.controlled_shutdown(2000).result()
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert rig.channels["shutdown"].sent == []


def test_isr_changes_go_out_as_the_controllers_version_has_them_until_they_are_answered(rig: Rig) -> None:
    part = AlterPartitionRequestPartitionData(
        partition_index=0,
        leader_epoch=1,
        new_isr_with_epochs=[BrokerState(broker_id=3, broker_epoch=9)],
        leader_recovery_state=0,
        partition_epoch=4,
    )
    topic = AlterPartitionRequestTopicData(topic_name="visits", topic_id=ID, partitions=[part])
    request = AlterPartitionRequest(broker_id=ME, broker_epoch=70, topics=[topic])
    answers: list[Any] = []

    rig.elected.alter_partition(request, answers.append)
    ((sent, _, timeout_ms),) = rig.channels["isr-changes"].sent

    assert isinstance(sent, RequestBuilder)
    older: Any = sent.build(2)
    assert (sent.build(3), older.topics[0].partitions[0].new_isr) == (request, [3])
    assert timeout_ms is None
    done = AlterPartitionResponse(error_code=0, topics=[])
    rig.channels["isr-changes"].answer(done)
    assert answers == [done]
    rig.elected.alter_partition(request, answers.append)
    rig.channels["isr-changes"].answer(BrokerError(ErrorCode.BROKER_NOT_AVAILABLE))
    assert answers[1].code is ErrorCode.BROKER_NOT_AVAILABLE


def test_its_channels_close_with_it(rig: Rig) -> None:
    rig.elected.close()

    assert all(channel.is_closed for channel in rig.channels.values())
