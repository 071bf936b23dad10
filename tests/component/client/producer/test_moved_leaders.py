"""A broker that does not lead a partition any more, and says who does (KIP-951): the next try goes there."""

from kavka.client import Producer
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker
from tests.support.scripted_broker import Asked

TIMEOUT_S = 120.0
FAR_AWAY_MS = 600_000


def test_a_leader_that_an_error_names_is_sent_to_at_once() -> None:
    """Neither the back-off nor new metadata are waited for."""
    former, present = ProducersBroker(), ProducersBroker()
    asked: list[int] = []

    def moved(request: Asked) -> ProduceResponse:
        asked.append(1)
        (topic,) = request.request.topic_data
        row = PartitionProduceResponse(
            index=0,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            base_offset=-1,
            record_errors=[],
            current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        )
        topics = [TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[row])]
        there = NodeEndpoint(node_id=2, host=present.node.host, port=present.node.port, rack=None)
        return ProduceResponse(responses=topics, node_endpoints=[there])

    former.answers[ApiKey.PRODUCE] = moved
    with AnsweringBroker(former.answers) as one, AnsweringBroker(present.answers) as other:
        former.node, present.node = one.node, other.node
        with Producer(
            bootstrap_servers=one.bootstrap, retry_backoff_ms=FAR_AWAY_MS, retry_backoff_max_ms=FAR_AWAY_MS
        ) as producer:
            for number in range(3):
                assert producer.send(TOPIC, b"kavka").result(TIMEOUT_S).offset == number
            assert asked == [1]
            assert producer.metrics["record-retry-total"] == 1
