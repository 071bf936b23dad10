"""Apache Kafka's brokers killed, frozen and restarted under all that a client does at once: see
test_producer_faults.py and test_consuming_faults.py for more of it with Kavka's.
"""

from __future__ import annotations

from typing import Any

import pytest

from kavka.client import Admin
from kavka.client.admin import NewTopic
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_producer_faults import frozen
from tests.support.accounted_loads import committed, rows_of
from tests.support.client_brokers import KAFKA_39, KAFKA_43
from tests.support.client_cluster import LONGER_THAN_A_REQUEST_S, PATIENT, QUICK
from tests.support.client_loads import LONG_MS, Copying, Feeding, Reading, wait_for_progress
from tests.support.processes import let_pass

PARTITIONS = 2
CLASSIC = {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 300}
NEW = {"group.protocol": "consumer"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("broker_kind", "way", "version"),
    [
        pytest.param(*KAFKA_39.values, CLASSIC, 1, id="kafka-3.9", marks=(*KAFKA_39.marks, pytest.mark.soak)),
        pytest.param(*KAFKA_43.values, NEW, 2, id="kafka-4.3", marks=KAFKA_43.marks),
    ],
)
def test_nothing_is_lost_or_doubled_as_a_broker_of_kafka_dies_freezes_and_restarts(
    own_broker: Any, topic: str, way: dict[str, Any], version: int
) -> None:
    """A producer, a group and a copier with transactions, together."""
    broker = own_broker({"group.initial.rebalance.delay.ms": "0"})
    target = f"{topic}-copied"
    with Admin(PATIENT, bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(each, num_partitions=PARTITIONS) for each in (topic, target)])
        quick = {**QUICK, "bootstrap.servers": broker.bootstrap}
        consuming = {**quick, **way, "default.api.timeout.ms": LONG_MS}
        transactional = {**quick, "transaction.timeout.ms": LONG_MS, "delivery.timeout.ms": LONG_MS}
        feeding = Feeding(quick, topic, PARTITIONS)
        reading = Reading(topic, f"{topic}-readers", consuming)
        copying = Copying(topic, target, transactional, consuming)
        loads = [feeding, *reading.members, copying]
        for load in loads:
            load.start()
        wait_for_progress(loads)
        broker.kill()
        broker.start()
        wait_for_progress(loads)
        with frozen(broker):
            let_pass(LONGER_THAN_A_REQUEST_S)
        wait_for_progress(loads)
        broker.stop()
        broker.start()
        wait_for_progress(loads)
        feeding.end()
        rows = rows_of(broker.bootstrap, topic, PARTITIONS)
        ends = {TopicPartition(topic, number): len(found) for number, found in enumerate(rows)}
        reading.finish(ends)
        copying.finish(ends)
        feeding.check(rows)
        for partition, end in ends.items():
            found = reading.values[partition]
            assert [found[offset] for offset in range(end)] == [row.value for row in rows[partition.partition]]
        copies = rows_of(broker.bootstrap, target, PARTITIONS)
        assert [[row.value for row in each] for each in copies] == [[row.value for row in each] for each in rows]
        assert committed(admin, reading.group_id) == committed(admin, target) == ends
    assert copying.versions == {version}
