"""A bit that rots in a broker's log: the broker serves it as it is, and the consumer tells."""

from pathlib import Path

import pytest

from kavka.client import Admin, Consumer, Producer, TopicPartition
from kavka.client.admin import NewTopic
from kavka.client.consumer.errors import CorruptBatchReadError
from tests.integration.client.test_consuming import consumer, read
from tests.support.kafka_process import KafkaProcess
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until

TIMEOUT_S = 60.0


@pytest.fixture
def rotten(broker: KavkaProcess | KafkaProcess, topic: str) -> TopicPartition:
    """A partition of three batches of one record; a byte of the second one's value is another on the disk."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (b"first", b"second", b"third"):
            producer.send(topic, value).result(TIMEOUT_S)
    file = Path(broker.log_dir) / f"{topic}-0" / f"{0:020}.log"
    place = file.read_bytes().index(b"second")
    with file.open("r+b") as log:
        log.seek(place)
        log.write(b"S")
    return TopicPartition(topic, 0)


def test_what_has_rotted_is_raised_until_somebody_seeks_behind_it(
    broker: KavkaProcess | KafkaProcess, rotten: TopicPartition
) -> None:
    with consumer(broker.bootstrap) as reader:
        reader.assign([rotten])
        assert [record.value for record in read(reader, 1)] == [b"first"]
        for _ in range(2):
            with pytest.raises(CorruptBatchReadError) as caught:
                _until_something(reader)
            assert (caught.value.topic_partition, caught.value.offset, caught.value.next_offset) == (rotten, 1, 2)
            assert reader.position(rotten) == 1
        reader.seek(rotten, caught.value.next_offset)
        assert [record.value for record in read(reader, 1)] == [b"third"]


def test_what_has_rotted_is_left_out_if_asked(broker: KavkaProcess | KafkaProcess, rotten: TopicPartition) -> None:
    with consumer(broker.bootstrap, kavka_skip_corrupt_batches=True) as reader:
        reader.assign([rotten])
        assert [record.value for record in read(reader, 2)] == [b"first", b"third"]


def _until_something(reader: Consumer) -> None:
    wait_until(lambda: len(reader.poll(500)), TIMEOUT_S, "nothing is read, and nothing raised")
