"""What a broker that leads one partition, and coordinates everybody, answers to producers."""

from itertools import count
from typing import Any

from kavka.client import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kavka.protocol.messages.end_txn import EndTxnResponse
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kavka.protocol.messages.init_producer_id import InitProducerIdResponse
from kavka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.support.answering_broker import Answer
from tests.support.scripted_broker import Asked

TOPIC = "birds"
TOPIC_ID = bytes(15) + b"\7"
_PARTITION = MetadataResponsePartition(
    error_code=0, partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
)


class ProducersBroker:
    """Its answers, all of them good. `node` is set once it is known where it listens."""

    node: Node

    def __init__(self) -> None:
        self._offsets = count()
        self.answers: dict[int, Answer] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=0),
            ApiKey.FIND_COORDINATOR: self._coordinator,
            ApiKey.ADD_PARTITIONS_TO_TXN: lambda _: AddPartitionsToTxnResponse(
                results_by_transaction=[],
                results_by_topic_v3_and_below=[
                    AddPartitionsToTxnTopicResult(
                        name=TOPIC,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=0)
                        ],
                    )
                ],
            ),
            ApiKey.ADD_OFFSETS_TO_TXN: lambda _: AddOffsetsToTxnResponse(error_code=0),
            ApiKey.TXN_OFFSET_COMMIT: lambda _: TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponseTopic(
                        name=TOPIC, partitions=[TxnOffsetCommitResponsePartition(partition_index=0, error_code=0)]
                    )
                ]
            ),
            ApiKey.END_TXN: lambda _: EndTxnResponse(error_code=0),
            ApiKey.PRODUCE: self._produce,
        }

    def _metadata(self, asked: Asked) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=1, host=self.node.host, port=self.node.port)
        topics = [
            MetadataResponseTopic(
                error_code=0, name=each.name, topic_id=TOPIC_ID, is_internal=False, partitions=[_PARTITION]
            )
            for each in asked.request.topics or []
        ]
        return MetadataResponse(brokers=[broker], cluster_id="c", controller_id=1, topics=topics)

    def _coordinator(self, asked: Asked) -> FindCoordinatorResponse:
        rows = [
            Coordinator(key=key, node_id=1, host=self.node.host, port=self.node.port, error_code=0, error_message=None)
            for key in asked.request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    def _produce(self, asked: Asked) -> ProduceResponse:
        answers: list[Any] = []
        for topic in asked.request.topic_data:
            rows = [
                PartitionProduceResponse(
                    index=each.index, error_code=0, base_offset=next(self._offsets), record_errors=[]
                )
                for each in topic.partition_data
            ]
            answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
        return ProduceResponse(responses=answers)
