"""Brokers that are killed and frozen under a consumer: all records come, once and in order."""

import os
import signal

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_consuming import LONG_MS, consumer, produce, read
from tests.support.client_brokers import KAVKA
from tests.support.server import RunningServer

pytestmark = pytest.mark.parametrize("broker", [KAVKA], indirect=True)


def made(bootstrap: str, topic: str) -> TopicPartition:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    return TopicPartition(topic, 0)


def test_a_broker_that_is_killed_is_read_on_when_it_is_back(broker: RunningServer, topic: str) -> None:
    partition = made(broker.bootstrap, topic)
    produce(broker.bootstrap, partition, 3_000, **{"batch.num.messages": 100})
    settings = {"max_poll_records": 100, "max_partition_fetch_bytes": 10_000}
    with consumer(broker.bootstrap, group_id=topic, enable_auto_commit=False, **settings) as reader:
        reader.assign([partition])
        found = list(reader.poll(LONG_MS))
        broker.kill()
        # What was fetched ahead is given out, and then there is nothing.
        while records := reader.poll(500):
            found += records
        assert len(found) < 3_000
        with pytest.raises(KafkaTimeoutError):
            reader.end_offsets([partition], timeout_ms=500)
        broker.start()
        found += read(reader, 3_000 - len(found))
        reader.commit_sync()
    assert [record.offset for record in found] == list(range(3_000))


def test_a_frozen_broker_is_waited_for_and_read_on(broker: RunningServer, topic: str) -> None:
    partition = made(broker.bootstrap, topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    with consumer(broker.bootstrap, request_timeout_ms=1_500, default_api_timeout_ms=60_000) as reader:
        reader.assign([partition])
        assert reader.position(partition) == 0
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            assert len(reader.poll(2_500)) == 0
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        for number in range(10):
            producer.produce(topic, b"%d" % number)
        assert producer.flush(60) == 0
        assert [record.value for record in read(reader, 10)] == [b"%d" % number for number in range(10)]
