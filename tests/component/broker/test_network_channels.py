"""The controller's orders over the network: in order, one in flight, again and again until they are void."""

import select
import struct
from collections.abc import Generator

import pytest

from kavka.broker.interbroker import NetworkChannels
from kavka.broker.interbroker.own_orders import OwnOrders
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.fake_brokers import FakeBroker
from tests.support.interbroker_stage import SETTINGS, InterBrokerStage, info, leadership, metadata
from tests.support.scripted_broker import ScriptedBroker, Visitor

VERSIONS = {4: 5, 5: 3, 6: 7}


@pytest.fixture
def stage() -> Generator[InterBrokerStage, None, None]:
    with InterBrokerStage() as stage:
        yield stage


def channels_of(stage: InterBrokerStage, *brokers: ScriptedBroker) -> NetworkChannels:
    channels = NetworkChannels(
        stage.inter_broker, listener_name="PLAINTEXT", versions=lambda: VERSIONS, timeout_ms=30_000
    )
    channels.update_brokers([info(broker) for broker in brokers])
    return channels


def has_nothing_to_read(visitor: Visitor) -> bool:
    poll = select.poll()
    poll.register(visitor.socket, select.POLLIN)
    return poll.poll(0) == []


def serve_leadership(visitor: Visitor, controller_epoch: int) -> None:
    asked = visitor.asked()
    assert isinstance(asked.request, LeaderAndIsrRequest)
    assert asked.request.controller_epoch == controller_epoch
    visitor.answer(asked, LeaderAndIsrResponse(error_code=0))


def test_a_broker_is_told_in_order_and_one_thing_at_a_time(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    for request in (leadership(1), metadata(2), leadership(3)):
        channels.send(1, request, stage.answers.put)
    visitor = broker.accept()
    first = visitor.asked()
    assert (first.header.api_key, first.header.api_version) == (4, 5)
    stage.turn()
    assert has_nothing_to_read(visitor)
    assert channels.queue_sizes() == {1: 3}
    visitor.answer(first, LeaderAndIsrResponse(error_code=0))
    assert isinstance(stage.answer(), LeaderAndIsrResponse)

    second = visitor.asked()

    assert isinstance(second.request, UpdateMetadataRequest)
    assert second.header.api_version == 7
    stage.turn()
    assert has_nothing_to_read(visitor)
    visitor.answer(second, UpdateMetadataResponse(error_code=11))
    assert stage.answer().error_code == 11
    serve_leadership(visitor, 3)
    stage.answer()
    assert channels.queue_sizes() == {1: 0}


@pytest.mark.parametrize("how", ["closed", "reset", "lying"])
def test_what_got_no_answer_is_sent_again_before_all_else(stage: InterBrokerStage, how: str) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    channels.send(1, leadership(2), stage.answers.put)
    for _ in range(2):
        visitor = broker.accept()
        asked = visitor.asked()
        assert asked.request.controller_epoch == 1
        if how == "closed":
            visitor.socket.close()
        elif how == "reset":
            visitor.reset()
        else:
            visitor.socket.sendall(struct.pack(">ii", 4, asked.header.correlation_id + 7))
            assert visitor.closed_by_peer()

    visitor = broker.accept()
    for controller_epoch in (1, 2):
        serve_leadership(visitor, controller_epoch)
        assert stage.answer().error_code == 0
    assert stage.inter_broker.counts.bad_answers == (2 if how == "lying" else 0)


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = NetworkChannels(stage.inter_broker, listener_name=None, versions=lambda: VERSIONS, timeout_ms=1000)
    channels.update_brokers([info(broker)])
    with stage.clock.standing():
        channels.send(1, leadership(1), stage.answers.put)
        late = broker.accept()
        late.asked()
        stage.go(1001)
        assert late.closed_by_peer()
    assert broker.accept().asked().request.controller_epoch == 1


def test_metadata_that_wait_are_sent_as_one(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    visitor = broker.accept()
    asked = visitor.asked()
    for _ in range(5):
        channels.send(1, metadata(1), stage.answers.put)
    assert channels.queue_sizes() == {1: 2}
    visitor.answer(asked, LeaderAndIsrResponse(error_code=0))
    stage.answer()
    visitor.answer(visitor.asked(), UpdateMetadataResponse(error_code=0))
    for _ in range(5):
        assert stage.answer().error_code == 0


def test_a_broker_that_is_gone_is_told_nothing_more(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    channels.send(1, leadership(2), stage.answers.put)
    visitor = broker.accept()
    visitor.asked()

    channels.update_brokers([])

    for _ in range(2):
        assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    assert visitor.closed_by_peer()
    channels.send(1, leadership(3), stage.answers.put)
    assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    assert channels.queue_sizes() == {}


def test_a_broker_that_cannot_be_reached_is_tried_until_it_is_gone(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    broker.stop_listening()
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    stage.turn()
    channels.update_brokers([])
    assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_new_incarnation_is_told_only_what_is_meant_for_it(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    old = broker.accept()
    old.asked()
    channels.send(1, leadership(2), stage.answers.put)

    channels.update_brokers([info(broker, epoch=200)])
    channels.send(1, leadership(3), stage.answers.put)

    for _ in range(2):
        assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    assert old.closed_by_peer()
    serve_leadership(broker.accept(), 3)
    assert stage.answer().error_code == 0


def test_a_broker_that_announces_another_endpoint_is_told_there(stage: InterBrokerStage) -> None:
    broker, elsewhere = stage.broker(1), stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    broker.accept().asked()
    channels.update_brokers([info(elsewhere)])
    serve_leadership(elsewhere.accept(), 1)
    assert stage.answer().error_code == 0


def test_a_broker_that_is_silent_holds_up_no_other(stage: InterBrokerStage) -> None:
    silent, good = stage.broker(1), stage.broker(2)
    channels = channels_of(stage, silent, good)
    channels.send(1, leadership(1), stage.answers.put)
    channels.send(2, leadership(2), stage.answers.put)
    silent.accept().asked()
    serve_leadership(good.accept(), 2)
    assert stage.answer().error_code == 0


def test_an_order_that_the_brokers_release_lacks_is_refused_and_the_next_one_sent() -> None:
    with InterBrokerStage(SETTINGS._replace(discover_versions=True)) as stage:
        broker = stage.broker(1)
        channels = channels_of(stage, broker)
        channels.send(1, leadership(1), stage.answers.put)
        channels.send(1, metadata(2), stage.answers.put)
        visitor = broker.accept()
        visitor.serve_versions({4: (0, 4), 6: (0, 7)})
        refusal = stage.answer()
        assert isinstance(refusal, BrokerError)
        assert refusal.code is ErrorCode.UNSUPPORTED_VERSION
        visitor.answer(visitor.asked(), UpdateMetadataResponse(error_code=0))
        assert stage.answer().error_code == 0


def test_a_failing_caller_keeps_nothing_up(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)

    def fails(_response: object) -> None:
        raise ValueError("not mine")

    channels.send(1, leadership(1), fails)
    channels.send(1, leadership(2), stage.answers.put)
    visitor = broker.accept()
    serve_leadership(visitor, 1)
    serve_leadership(visitor, 2)
    assert stage.answer().error_code == 0


def test_closed_channels_close_their_connections_and_call_nobody_back(stage: InterBrokerStage) -> None:
    broker = stage.broker(1)
    channels = channels_of(stage, broker)
    channels.send(1, leadership(1), stage.answers.put)
    channels.send(1, leadership(2), stage.answers.put)
    visitor = broker.accept()
    visitor.asked()

    channels.close()

    assert visitor.closed_by_peer()
    stage.turn()
    assert stage.answers.empty()
    channels.update_brokers([info(broker)])
    assert channels.queue_sizes() == {}


@pytest.mark.parametrize(("version", "kind"), [(7, 0), (8, 2)])
def test_who_speaks_an_old_version_is_not_told_that_these_are_all_topics(
    stage: InterBrokerStage, version: int, kind: int
) -> None:
    broker = stage.broker(1)
    channels = NetworkChannels(stage.inter_broker, listener_name=None, versions=lambda: {6: version}, timeout_ms=30_000)
    channels.update_brokers([info(broker)])
    whole = metadata(1)
    whole.type = 2
    channels.send(1, whole, stage.answers.put)
    visitor = broker.accept()
    asked = visitor.asked()
    assert (asked.header.api_version, asked.request.type) == (version, kind)
    assert whole.type == 2
    visitor.answer(asked, UpdateMetadataResponse(error_code=0))
    assert stage.answer().error_code == 0


def test_the_own_broker_is_told_without_the_network(stage: InterBrokerStage) -> None:
    broker, own = stage.broker(1), FakeBroker(9)
    orders = OwnOrders(9, own, stage.deaths.append)
    orders.start()
    channels = NetworkChannels(
        stage.inter_broker, listener_name=None, versions=lambda: VERSIONS, timeout_ms=1000, own=(9, orders)
    )
    channels.update_brokers([info(broker), info(broker)._replace(broker_id=9)])
    channels.send(9, leadership(1), stage.answers.put)
    assert stage.answer().error_code == 0
    assert [type(each) for each in own.requests] == [LeaderAndIsrRequest]
    assert channels.queue_sizes() == {1: 0, 9: 0}
    channels.update_brokers([])
    assert channels.queue_sizes() == {}
    channels.close()
    orders.join()
