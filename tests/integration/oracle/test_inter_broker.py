"""What this broker sends to others is understood by Apache Kafka: orders to brokers, requests to the controller."""

import queue
from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from kavka.broker.interbroker import ControllerChannel, InterBroker, NetworkChannels
from kavka.client import ClientSettings, Node
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.interbroker_stage import InterBrokerStage, leadership, metadata
from tests.support.kafka_process import KafkaProcess, KRaftKafka, ZooKeeperKafka
from tests.support.wire import Wire

pytestmark = [pytest.mark.java, pytest.mark.slow]

TIMEOUT_S = 60.0


@pytest.fixture
def stage() -> Generator[InterBrokerStage, None, None]:
    with InterBrokerStage(ClientSettings(client_id="9")) as stage:
        yield stage


def controller_of(kafka: KafkaProcess) -> Node:
    with Wire(kafka.host, kafka.port) as wire:
        answer = wire.ask(MetadataRequest(topics=[]), 8)
    (found,) = (each for each in answer.brokers if each.node_id == answer.controller_id)
    return Node(found.node_id, kafka.host, kafka.port)


def channel_to(kafka: KafkaProcess, inter_broker: InterBroker) -> ControllerChannel:
    node = controller_of(kafka)
    return ControllerChannel(inter_broker, lambda: node, lane="test", timeout_ms=30_000)


def ask(channel: ControllerChannel, request: Any) -> Any:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    channel.send(request, answers.put)
    return answers.get(timeout=TIMEOUT_S)


def test_the_controller_of_kafka_3_9_knows_who_asks(kafka39: ZooKeeperKafka, stage: InterBrokerStage) -> None:
    channel = channel_to(kafka39, stage.inter_broker)
    own = controller_of(kafka39).id
    asked = [ask(channel, AllocateProducerIdsRequest(broker_id=each, broker_epoch=5)) for each in (own, own + 77)]
    channel.close()
    assert [each.error_code for each in asked] == [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED]


def test_kafka_3_9_reads_orders_in_each_version_and_refuses_those_for_another_incarnation(
    kafka39: ZooKeeperKafka, stage: InterBrokerStage
) -> None:
    node = controller_of(kafka39)
    endpoint = Endpoint("PLAINTEXT", node.host, node.port, "PLAINTEXT")
    for versions in ({4: 4, 6: 6}, {4: 5, 6: 7}, {4: 7, 6: 8}):
        channels = NetworkChannels(
            stage.inter_broker, listener_name="PLAINTEXT", versions=partial(dict, versions), timeout_ms=30_000
        )
        channels.update_brokers([BrokerInfo(node.id, (endpoint,), epoch=1)])
        for request in (leadership(1000), metadata(1000)):
            request.broker_epoch = 0
            channels.send(node.id, request, stage.answers.put)
        for _ in range(2):
            answer = stage.answers.get(timeout=TIMEOUT_S)
            assert getattr(answer, "error_code", answer) == ErrorCode.STALE_BROKER_EPOCH
        channels.close()


def test_versions_are_agreed_on_with_kafka_4_3(kafka43: KRaftKafka, stage: InterBrokerStage) -> None:
    channel = channel_to(kafka43, stage.inter_broker)
    answer = ask(channel, MetadataRequest(topics=[]))
    refused = ask(channel, leadership())
    channel.close()
    assert len(answer.brokers) == 1
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert stage.inter_broker.counts.bad_answers == 0
