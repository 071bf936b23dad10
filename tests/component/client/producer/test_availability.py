"""partitioner.availability.timeout.ms (KIP-794): who takes nothing for long gets no records without key."""

import pytest

from kavka.client import Producer
from kavka.client.producer.sender import Sender, SenderSettings
from tests.component.client.producer.simulated_cluster import TOPIC, SimulatedCluster
from tests.component.client.producer.simulated_producer import SimulatedProducer, dice_of
from tests.component.client.producer.test_simulated_faults import SMALL

TIMEOUT_MS = 500
DRAWS = 200


def producer(*, timeout_ms: float = TIMEOUT_MS) -> SimulatedProducer:
    """Of a cluster of two brokers: partitions 0 and 2 are led by the first one, 1 by the other."""
    cluster = SimulatedCluster(dice_of(1))
    sender = SenderSettings(availability_timeout_ms=timeout_ms)
    made = SimulatedProducer(cluster, idempotent=False, accumulator=SMALL, sender=sender, lingers=True)
    made.send(0)
    made.finish()
    made.accumulator.calm()
    return made


def chosen(producer: SimulatedProducer) -> set[int]:
    """The partitions that records without key go to."""
    topic = producer.accumulator.topics[TOPIC]
    return {topic.stick().topic_partition.partition for _ in range(DRAWS)}


def refuse(producer: SimulatedProducer, nodes: set[int], for_ms: float) -> None:
    """These brokers take nothing from now on, for so long; there is a record for each."""
    producer.cluster.not_ready = nodes
    for partition in (0, 1):
        producer.send(partition)
    producer.now_ms += SMALL.linger_ms
    producer.work()
    producer.now_ms += for_ms
    producer.work()


def test_a_broker_that_takes_nothing_for_so_long_is_not_chosen_until_it_does() -> None:
    made = producer()
    refuse(made, {1}, TIMEOUT_MS)
    assert chosen(made) == {0, 1, 2}
    made.now_ms += 1
    made.work()
    assert chosen(made) == {0, 2}
    made.update()
    assert chosen(made) == {0, 2}, "newer metadata say nothing of it"
    made.cluster.not_ready = set()
    made.finish()
    made.work()
    assert chosen(made) == {0, 1, 2}
    made.check_callbacks()


def test_who_sticks_to_it_goes_elsewhere() -> None:
    made = producer()
    topic = made.accumulator.topics[TOPIC]
    topic.sticky = topic.queues[1]
    refuse(made, {1}, TIMEOUT_MS + 1)
    assert {topic.without_key().topic_partition.partition for _ in range(DRAWS)} <= {0, 2}


def test_where_nobody_takes_anything_all_are_as_good() -> None:
    made = producer()
    refuse(made, {0, 1}, TIMEOUT_MS + 1)
    assert chosen(made) == {0, 1, 2}


def test_a_refusal_that_ended_does_not_count_for_the_next() -> None:
    made = producer()
    refuse(made, {1}, TIMEOUT_MS - 10)
    made.cluster.not_ready = set()
    made.finish()
    made.accumulator.calm()
    refuse(made, {1}, TIMEOUT_MS - 10)
    assert chosen(made) == {0, 1, 2}


def test_zero_is_for_ever() -> None:
    made = producer(timeout_ms=0)
    refuse(made, {1}, 10 * TIMEOUT_MS)
    assert chosen(made) == {0, 1, 2}


@pytest.mark.parametrize(("is_adaptive", "expected_ms"), [(True, TIMEOUT_MS), (False, 0)])
def test_it_has_no_effect_without_adaptive_partitioning(is_adaptive: bool, expected_ms: float) -> None:
    with Producer(
        bootstrap_servers="127.0.0.1:1",
        partitioner_availability_timeout_ms=TIMEOUT_MS,
        partitioner_adaptive_partitioning_enable=is_adaptive,
    ) as made:
        sender = made._thread._machine
        assert isinstance(sender, Sender)
        assert sender._settings.availability_timeout_ms == expected_ms
