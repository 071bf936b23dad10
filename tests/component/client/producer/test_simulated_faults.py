"""Lost, late and doubled answers in every order: nothing acknowledged is lost, nothing doubled or out of order when
idempotent, and each callback is called once.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from kavka.client.api_errors import UnsupportedVersionError
from kavka.client.producer.accumulator import AccumulatorSettings
from kavka.client.producer.outcomes import RetrySettings
from kavka.client.producer.sender import SenderSettings
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import PartitionProduceResponse, TopicProduceResponse
from tests.component.client.producer.simulated_cluster import SimulatedCluster
from tests.component.client.producer.simulated_producer import SimulatedProducer

SMALL = AccumulatorSettings(batch_size_bytes=200, linger_ms=5, max_request_size_bytes=500, delivery_timeout_ms=3_000)
SEEDS = range(60)
REFUSALS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)


def run_at_random(
    producer: SimulatedProducer,
    dice: random.Random,
    steps: int = 400,
    *,
    cuts: float = 0.03,
    also: Callable[[], None] = lambda: None,
) -> None:
    """Send, lose, delay and answer by chance, and do what is to be done `also` at each step; then let all come to an
    end.
    """
    cluster = producer.cluster
    cluster.refuse = lambda _: dice.choice(REFUSALS) if dice.random() < 0.1 else ErrorCode.NONE
    cluster.refuse_after = lambda _: (
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if dice.random() < 0.05 else ErrorCode.NONE
    )
    for _ in range(steps):
        also()
        chance = dice.random()
        node = dice.choice(list(cluster.nodes))
        if chance < 0.3:
            producer.send(dice.choice(list(cluster.logs)), dice.choice((0, 10, 60)))
        elif chance < 0.5:
            producer.work()
        elif chance < 0.65:
            cluster.run_next(node)
        elif chance < 0.8:
            cluster.answer_next(node)
        elif chance < 0.8 + cuts:
            cluster.cut(node)
        elif chance < 0.85:
            cluster.run_stray()
        elif chance < 0.87:
            cluster.move(dice.choice(list(cluster.logs)))
        elif chance < 0.9:
            producer.update()
        else:
            producer.now_ms += dice.choice((1, 10, 100, 400))
    cluster.refuse = cluster.refuse_after = lambda _: ErrorCode.NONE
    producer.finish()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("max_in_flight", [1, 5])
def test_idempotent_is_in_order_and_once(seed: int, max_in_flight: int) -> None:
    dice = random.Random(seed)
    producer = SimulatedProducer(SimulatedCluster(dice, max_in_flight=max_in_flight), accumulator=SMALL)
    run_at_random(producer, dice)
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()


@pytest.mark.parametrize("seed", SEEDS)
def test_idempotent_gives_up_and_goes_on(seed: int) -> None:
    """So many faults that batches expire: what was given up may be there, once, and the others go on behind it."""
    dice = random.Random(seed)
    short = SMALL._replace(delivery_timeout_ms=300)
    producer = SimulatedProducer(SimulatedCluster(dice), accumulator=short)
    run_at_random(producer, dice, cuts=0.05)
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("acks", [1, -1])
def test_nothing_acknowledged_is_lost_without_idempotence(seed: int, acks: int) -> None:
    dice = random.Random(seed)
    sender = SenderSettings(acks=acks, max_in_flight=5)
    producer = SimulatedProducer(SimulatedCluster(dice), idempotent=False, accumulator=SMALL, sender=sender)
    run_at_random(producer, dice)
    producer.check_callbacks()
    producer.check_logs()


@pytest.mark.parametrize("seed", SEEDS)
def test_one_in_flight_keeps_the_order_without_idempotence(seed: int) -> None:
    """Records may be there twice, but each first time in order."""
    dice = random.Random(seed)
    cluster = SimulatedCluster(dice, max_in_flight=1)
    producer = SimulatedProducer(cluster, idempotent=False, accumulator=SMALL)
    # A request that comes late, from a connection that is closed, can come between whatever the client does.
    run_at_random(producer, dice, cuts=0.0)
    producer.check_callbacks()
    producer.check_logs()
    for partition, log in cluster.logs.items():
        firsts = list(dict.fromkeys(log.values))
        assert firsts == [value for value in producer.order[partition] if value in firsts]


@pytest.mark.parametrize("seed", range(20))
def test_callbacks_come_in_the_order_of_the_partition(seed: int) -> None:
    dice = random.Random(seed)
    producer = SimulatedProducer(SimulatedCluster(dice), accumulator=SMALL)
    run_at_random(producer, dice, cuts=0.0)
    for partition, called in producer.called.items():
        assert called == producer.order[partition]


@pytest.mark.parametrize("seed", range(20))
def test_few_retries_fail_and_the_rest_goes_on(seed: int) -> None:
    dice = random.Random(seed)
    producer = SimulatedProducer(SimulatedCluster(dice), accumulator=SMALL, retries=RetrySettings(retries=1))
    run_at_random(producer, dice, cuts=0.05)
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()


@pytest.mark.parametrize("seed", range(30))
def test_batches_that_are_too_large_are_split_in_order(seed: int) -> None:
    dice = random.Random(seed)
    cluster = SimulatedCluster(dice)
    cluster.max_batch_bytes = 140
    producer = SimulatedProducer(cluster, accumulator=SMALL._replace(batch_size_bytes=400))
    run_at_random(producer, dice)
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()
    assert producer.metrics.splits > 0


@pytest.mark.parametrize("seed", range(30))
def test_refused_records_fail_alone(seed: int) -> None:
    dice = random.Random(seed)
    cluster = SimulatedCluster(dice)
    producer = SimulatedProducer(cluster, accumulator=SMALL)
    run_at_random(producer, dice, steps=100)
    cluster.refuse = lambda _: ErrorCode.INVALID_RECORD if dice.random() < 0.2 else ErrorCode.NONE
    for _ in range(200):
        producer.send(dice.choice(list(cluster.logs)), 60)
        if dice.random() < 0.3:
            producer.step()
        producer.now_ms += 1
    cluster.refuse = lambda _: ErrorCode.NONE
    producer.finish()
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()


@pytest.mark.parametrize("appended", [1, 3])
def test_what_a_silent_leader_has_appended_is_found_by_its_successor(appended: int) -> None:
    """However many records come after it: brokers know of a producer's last five batches, and no longer."""
    cluster = SimulatedCluster(random.Random(1), nodes=2)
    cluster.may_stray = lambda _: False
    producer = SimulatedProducer(cluster, accumulator=SMALL)
    producer.send(0)
    producer.finish()
    for _ in range(appended):
        producer.send(0)
        producer.work()
        cluster.run_next(0)
    cluster.leaders[0], cluster.epochs[0] = 1, 2
    producer.update()
    for _ in range(12):
        producer.send(0)
        producer.work()
        while cluster.connections[1].in_flight:
            cluster.run_next(1)
            cluster.answer_next(1)
            producer.work()
    cluster.cut(0)
    producer.finish()
    assert [error for calls in producer.outcomes.values() for _, error in calls if error is not None] == []
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()


def test_an_answer_that_leaves_partitions_out_is_no_answer_for_them() -> None:
    cluster = SimulatedCluster(random.Random(1), nodes=1)
    producer = SimulatedProducer(cluster, idempotent=False, accumulator=SMALL, lingers=True)
    honest = cluster.handlers[ApiKey.PRODUCE]
    lies = [True]

    def forgetful(node: int, request: Any) -> Any:
        answer: Any = honest(node, request)
        if lies.pop() if lies else False:
            answer.responses[0].partition_responses = answer.responses[0].partition_responses[:1]
            answer.responses.append(TopicProduceResponse(name="others", topic_id=bytes(16), partition_responses=[]))
            strange = PartitionProduceResponse(index=77, error_code=0, base_offset=5, record_errors=[])
            answer.responses[0].partition_responses.append(strange)
        return answer

    cluster.handlers[ApiKey.PRODUCE] = forgetful
    for partition in cluster.logs:
        producer.send(partition)
    producer.finish()
    producer.check_callbacks()
    producer.check_logs()
    assert [len(log.values) for log in cluster.logs.values()] == [1, 2, 2]


def test_without_acks_what_is_written_counts() -> None:
    cluster = SimulatedCluster(random.Random(1))
    sender = SenderSettings(acks=0)
    producer = SimulatedProducer(cluster, idempotent=False, accumulator=SMALL, sender=sender)
    values = [producer.send(0) for _ in range(30)]
    producer.finish()
    producer.check_callbacks()
    assert {producer.outcomes[value][0][0].offset for value in values} == {-1}
    assert cluster.logs[0].values == values


def test_each_partition_of_a_broker_gets_its_turn() -> None:
    """A request has room for three of six partitions' batches: those that did not fit begin the next one."""
    cluster = SimulatedCluster(random.Random(1), nodes=1, partitions=6, max_in_flight=1)
    sender = SenderSettings(max_in_flight=5, max_request_size_bytes=420)
    producer = SimulatedProducer(cluster, idempotent=False, accumulator=SMALL, sender=sender, lingers=True)
    for _ in range(8):
        for partition in cluster.logs:
            producer.send(partition, 60)
    producer.now_ms += 1000
    for requests in range(1, 5):
        producer.step()
        appends = [log.appends for log in cluster.logs.values()]
        assert sum(appends) == 3 * requests
        assert max(appends) - min(appends) <= 1


@pytest.mark.parametrize("api", [ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID])
def test_a_broker_that_is_too_old_is_named(api: ApiKey) -> None:
    """The one has no record batches, the other no producer ids."""
    cluster = SimulatedCluster(random.Random(1))
    if api is ApiKey.PRODUCE:
        cluster.ranges[api] = (0, 2)
    else:
        del cluster.ranges[api]
    producer = SimulatedProducer(cluster, accumulator=SMALL)
    value = producer.send(0)
    for _ in range(20):
        producer.step()
        producer.now_ms += 10
    assert isinstance(producer.outcomes[value][0][1], UnsupportedVersionError)
