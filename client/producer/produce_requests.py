"""Produce requests made of batches."""

from collections.abc import Sequence

from kavka.client.call import RequestBuilder, VersionRange
from kavka.client.cluster import Cluster
from kavka.client.producer.batch import ProducerBatch
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.schema import ZERO_UUID

OLDEST: int = 3
"""Record batches of magic 2."""
NEWEST_BY_NAME: int = 12
NEWEST: int = 13
NEWEST_OUTSIDE_TRANSACTIONS: int = 11
"""From version 12 on a transactional batch adds its partition to the transaction by itself (KIP-890)."""


def produce_request(
    acks: int, timeout_ms: float, transactional_id: str | None, batches: Sequence[ProducerBatch], cluster: Cluster
) -> RequestBuilder:
    """A request with these batches, one of each partition at most. Topics have their ids of `cluster`."""

    def build(_version: int) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            topic, partition = batch.topic_partition
            records = batch.outgoing(transactional=transactional_id is not None)
            topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=records))
        return ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=int(timeout_ms),
            topic_data=[
                TopicProduceData(name=topic, topic_id=topic_id(cluster, topic), partition_data=partitions)
                for topic, partitions in topics.items()
            ],
        )

    return RequestBuilder(ApiKey.PRODUCE, build)


def produce_versions(batches: Sequence[ProducerBatch], cluster: Cluster, *, adds_to_transaction: bool) -> VersionRange:
    """The versions in which these batches may go out."""
    if not adds_to_transaction:
        return OLDEST, NEWEST_OUTSIDE_TRANSACTIONS
    has_ids = all(topic_id(cluster, batch.topic_partition.topic) != ZERO_UUID for batch in batches)
    return OLDEST, NEWEST if has_ids else NEWEST_BY_NAME


def topic_id(cluster: Cluster, topic: str) -> bytes:
    """The topic's id; zeros where none is known."""
    info = cluster.topics.get(topic)
    return info.id if info is not None else ZERO_UUID
