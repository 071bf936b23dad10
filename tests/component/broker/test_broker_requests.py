"""Requests to any broker, each sent once."""

import threading
from collections.abc import Generator

import pytest

from kavka.broker.interbroker import BrokerRequests
from kavka.broker.interbroker.broker_requests import MAX_QUEUED
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.support.interbroker_stage import SETTINGS, InterBrokerStage
from tests.support.scripted_broker import Visitor


@pytest.fixture
def stage() -> Generator[InterBrokerStage, None, None]:
    with InterBrokerStage() as stage:
        yield stage


@pytest.fixture
def requests(stage: InterBrokerStage) -> BrokerRequests:
    return BrokerRequests(stage.inter_broker, lane="markers", timeout_ms=30_000)


def markers() -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[])


def serve(visitor: Visitor) -> None:
    asked = visitor.asked()
    assert isinstance(asked.request, WriteTxnMarkersRequest)
    visitor.answer(asked, WriteTxnMarkersResponse(markers=[]))


def test_brokers_answer_apart_from_one_another(stage: InterBrokerStage, requests: BrokerRequests) -> None:
    silent, good = stage.broker(1), stage.broker(2)
    for broker in (silent, good, good):
        requests.send(broker.node, markers(), stage.answers.put)
    silent.accept().asked()
    visitor = good.accept()
    for _ in range(2):
        serve(visitor)
        assert isinstance(stage.answer(), WriteTxnMarkersResponse)


@pytest.mark.parametrize("how", ["closed", "lying"])
def test_what_gets_no_answer_is_not_sent_again_and_the_next_is(
    stage: InterBrokerStage, requests: BrokerRequests, how: str
) -> None:
    broker = stage.broker(1)
    requests.send(broker.node, markers(), stage.answers.put)
    visitor = broker.accept()
    asked = visitor.asked()
    if how == "closed":
        visitor.socket.close()
    else:
        visitor.answer(asked, WriteTxnMarkersResponse(markers=[]), correlation_id=asked.header.correlation_id + 1)
    assert stage.answer().code is ErrorCode.NETWORK_EXCEPTION
    requests.send(broker.node, markers(), stage.answers.put)
    serve(broker.accept())
    assert isinstance(stage.answer(), WriteTxnMarkersResponse)


def test_who_waits_for_a_broker_that_is_not_reached_hears_of_it(
    stage: InterBrokerStage, requests: BrokerRequests
) -> None:
    broker = stage.broker(1)
    broker.stop_listening()
    for _ in range(2):
        for _ in range(3):
            requests.send(broker.node, markers(), stage.answers.put)
        for _ in range(3):
            assert stage.answer().code is ErrorCode.NETWORK_EXCEPTION
    assert requests._destinations == {}


def test_an_answer_that_is_late_is_an_error(stage: InterBrokerStage, requests: BrokerRequests) -> None:
    broker = stage.broker(1)
    requests.send(broker.node, markers(), stage.answers.put, timeout_ms=30)
    assert stage.answer().code is ErrorCode.REQUEST_TIMED_OUT


def test_what_waits_for_a_connection_is_late_in_time() -> None:
    with InterBrokerStage(SETTINGS._replace(discover_versions=True)) as stage:
        requests = BrokerRequests(stage.inter_broker, lane="markers", timeout_ms=1000)
        broker = stage.broker(1)
        with stage.clock.standing():
            requests.send(broker.node, markers(), stage.answers.put)
            broker.accept().asked()
            stage.go(1001)
            assert stage.answer().code is ErrorCode.REQUEST_TIMED_OUT


def test_a_broker_without_the_version_is_not_asked() -> None:
    with InterBrokerStage(SETTINGS._replace(discover_versions=True)) as stage:
        requests = BrokerRequests(stage.inter_broker, lane="markers", timeout_ms=30_000)
        broker = stage.broker(1)
        requests.send(broker.node, markers(), stage.answers.put, versions=(1, 1))
        requests.send(broker.node, markers(), stage.answers.put)
        visitor = broker.accept()
        visitor.serve_versions({27: (0, 0)})
        assert stage.answer().code is ErrorCode.UNSUPPORTED_VERSION
        serve(visitor)
        assert isinstance(stage.answer(), WriteTxnMarkersResponse)


def test_no_more_requests_wait_than_there_is_room_for(stage: InterBrokerStage, requests: BrokerRequests) -> None:
    broker = stage.broker(1)
    sent = SETTINGS.max_in_flight
    for _ in range(sent):
        requests.send(broker.node, markers(), stage.answers.put)
    visitor = broker.accept()
    for _ in range(sent):
        visitor.asked()
    for _ in range(MAX_QUEUED):
        requests.send(broker.node, markers(), stage.answers.put)
    refused = threading.Event()
    requests.send(broker.node, markers(), lambda _: refused.set())
    assert refused.is_set()
    assert stage.answers.empty()


def test_what_waits_when_it_is_closed_is_answered_once(stage: InterBrokerStage, requests: BrokerRequests) -> None:
    broker = stage.broker(1)
    sent = SETTINGS.max_in_flight
    for _ in range(sent + 2):
        requests.send(broker.node, markers(), stage.answers.put)
    visitor = broker.accept()
    asked = [visitor.asked() for _ in range(sent)]

    requests.close()

    for _ in range(2):
        assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
    for each in asked:
        visitor.answer(each, WriteTxnMarkersResponse(markers=[]))
        assert isinstance(stage.answer(), WriteTxnMarkersResponse)
    requests.send(broker.node, markers(), stage.answers.put)
    assert stage.answer().code is ErrorCode.BROKER_NOT_AVAILABLE
