"""A broker of a cluster that has just begun: what it is asked about the cluster waits for its controller's word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.describe_cluster import DescribeClusterRequest
from kavka.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.schema import schema_of
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import BROKER_ID, update_metadata
from tests.support.network_stage import SIZE

QUESTIONS: list[tuple[Any, int]] = [
    (MetadataRequest(topics=[]), 12),
    (MetadataRequest(topics=None), 9),
    (DescribeClusterRequest(include_cluster_authorized_operations=False), 1),
    (DescribeTopicPartitionsRequest(topics=[TopicRequest(name="visits")], cursor=None), 0),
]


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    made = BrokerCore(tmp_path)
    services: Any = made.services
    services.cluster_id = "cluster-of-the-test"
    yield made
    made.close()


def frame(request: Any, version: int) -> bytes:
    return encode_request_header(_key(request), version, 1, "early") + encode(request, version)


def _key(request: Any) -> int:
    key = schema_of(type(request)).key
    assert key is not None
    return key


@pytest.mark.parametrize(("request_", "version"), QUESTIONS)
def test_the_answer_comes_with_the_first_word_of_the_controller(core: BrokerCore, request_: Any, version: int) -> None:
    assert core.ask(frame(request_, version)) == b""

    core.services.metadata.apply(update_metadata({"visits": [BROKER_ID]}))
    core.stage.settle()

    _, start = decode_response_header(_key(request_), version, core.socket.taken, SIZE.size)
    answer: Any = decode(api.spec(_key(request_)).response_class, version, memoryview(bytes(core.socket.taken))[start:])
    if hasattr(answer, "brokers"):
        assert [broker.broker_id if hasattr(broker, "broker_id") else broker.node_id for broker in answer.brokers] == [
            BROKER_ID
        ]
    else:
        assert [topic.error_code for topic in answer.topics] == [0]
    assert core.purgatory.size == 0


def test_who_has_waited_too_long_is_sent_to_another_broker(core: BrokerCore) -> None:
    assert core.ask(frame(*QUESTIONS[0])) == b""

    core.purgatory.expire_all()
    core.stage.settle()

    assert core.socket.closed
    assert not core.services.metadata.arrived.operations
