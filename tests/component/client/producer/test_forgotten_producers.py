"""Brokers that delete a producer's records, and with them all they know of it: it goes on (KIP-360)."""

import random
from typing import Any

import pytest

from kavka.client.api_errors import AbortableError, KafkaTimeoutError
from kavka.client.producer.sequences import LAST_EPOCH, Identity
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from tests.component.client.producer.simulated_cluster import ProducerState, Sent, SimulatedCluster
from tests.component.client.producer.simulated_producer import SimulatedProducer
from tests.component.client.producer.test_simulated_faults import SMALL, run_at_random
from tests.component.client.producer.test_troubled_transactions import Program


def forgetful(seed: int) -> SimulatedCluster:
    """One that takes no sequence but the first of who is not known."""
    cluster = SimulatedCluster(random.Random(seed))
    for log in cluster.logs.values():
        log.refuses_unknown = True
    return cluster


def idempotent() -> SimulatedProducer:
    """One whose first two records are in partition 0, each by itself."""
    producer = SimulatedProducer(forgetful(1), accumulator=SMALL)
    for _ in range(2):
        producer.send(0)
        producer.finish()
    return producer


def identity(producer: SimulatedProducer) -> Identity:
    assert producer.ids is not None
    return producer.ids.sequences.identity


def errors(producer: SimulatedProducer) -> list[object]:
    return [error for calls in producer.outcomes.values() for _, error in calls if error is not None]


@pytest.mark.parametrize("seed", [*range(60), 1478, 1670])
def test_deletions_neither_double_nor_reorder(seed: int) -> None:
    """Nothing is given up here: of that nobody could say whether it comes late.

    Nor does a request outlive both its connection and a deletion: see the next test.
    """
    dice = random.Random(seed)
    patient = SMALL._replace(delivery_timeout_ms=600_000)
    cluster = forgetful(seed)
    producer = SimulatedProducer(cluster, accumulator=patient)
    before_deletions: list[Sent] = []
    cluster.is_outdated = lambda sent: any(sent is each for each in before_deletions)

    def delete() -> None:
        if dice.random() < 0.02:
            dice.choice(list(cluster.logs.values())).delete_records()
            before_deletions.extend(sent for _, sent in cluster.strays)
            before_deletions.extend(sent for each in cluster.connections.values() for sent in each.requests)

    run_at_random(producer, dice, also=delete)
    producer.check_callbacks()
    producer.check_logs()
    producer.check_order()
    # None of them was in vain for good.
    producer.finish()
    last = [producer.send(partition) for partition in producer.cluster.logs]
    producer.finish()
    assert [producer.outcomes[value][0][1] for value in last] == [None] * len(last)


def test_requests_that_outlive_their_connection_and_a_deletion_write_once_more() -> None:
    """What no client can prevent: a late copy of sequence 0, acknowledged long ago, makes the producer known again
    under the epoch that it has left, and what else is late then follows, beside its copy under the next epoch.
    """
    cluster = forgetful(1)
    producer = SimulatedProducer(cluster, accumulator=SMALL)
    log = cluster.logs[0]
    honest = cluster.handlers[ApiKey.PRODUCE]
    seen: list[Any] = []

    def produce(node: int, sent: Any) -> Any:
        answer = honest(node, sent)
        seen.append(sent)
        if len(seen) == 2:
            # The second is refused, as the producer is unknown. Copies of both that were late are run now.
            assert log.values == [first]
            for late in seen:
                honest(node, late)
        return answer

    cluster.handlers[ApiKey.PRODUCE] = produce
    first = producer.send(0)
    producer.finish()
    log.delete_records()
    second = producer.send(0)
    producer.finish()
    assert errors(producer) == []
    assert log.values == [first, first, second, second]


@pytest.mark.parametrize("are_deleted", [True, False], ids=["deleted", "lost"])
def test_who_is_unknown_goes_on_under_the_next_epoch(are_deleted: bool) -> None:
    """Records may be gone for their age, or with a broker's disk: without transactions it is all the same."""
    producer = idempotent()
    before = identity(producer)
    log = producer.cluster.logs[0]
    log.delete_records()
    if not are_deleted:
        log.start_offset = 0
    values = [producer.send(0, 150) for _ in range(3)]
    producer.finish()
    assert errors(producer) == []
    assert log.values[2:] == values
    assert identity(producer) == Identity(before.id, before.epoch + 1)
    assert log.producers[before.id].epoch == before.epoch + 1


def test_all_that_is_on_its_way_begins_anew_together() -> None:
    """The first answer moves the epoch; those behind it say the same, and move nothing."""
    producer = idempotent()
    before = identity(producer)
    log = producer.cluster.logs[0]
    values = []
    for _ in range(3):
        values.append(producer.send(0))
        producer.now_ms += 10
        producer.work()
    assert producer.cluster.connections[0].in_flight == 3
    log.delete_records()
    for _ in range(3):
        producer.cluster.run_next(0)
    producer.cluster.answer_next(0)
    producer.work()
    producer.finish()
    assert errors(producer) == []
    assert log.values[2:] == values
    assert identity(producer) == Identity(before.id, before.epoch + 1)


def test_who_was_not_known_as_what_came_before_is_late_goes_after_it() -> None:
    """The first records are on their way to a former leader; the next one does not know the producer yet."""
    cluster = forgetful(1)
    producer = SimulatedProducer(cluster, accumulator=SMALL)
    producer.send(0)
    producer.finish()
    producer.accumulator.calm()
    before = identity(producer)
    log = cluster.logs[0]
    values = [producer.send(0)]
    producer.now_ms += 10
    producer.work()
    assert cluster.connections[0].in_flight == 1
    log.delete_records()
    cluster.leaders[0], cluster.epochs[0] = 1, 2
    producer.update()
    values.append(producer.send(0))
    producer.now_ms += 10
    producer.work()
    assert cluster.connections[1].in_flight == 1
    cluster.run_next(1)
    cluster.answer_next(1)
    producer.work()
    assert identity(producer) == before, "it may be there at any moment"
    producer.finish()
    assert errors(producer) == []
    assert log.values[1:] == values
    assert identity(producer) == Identity(before.id, before.epoch + 1)


def test_a_late_request_of_an_earlier_epoch_makes_nobody_wait_for_what_came_before() -> None:
    """Records after it are acknowledged, then all are deleted; what the partition knows of the producer after that is
    of a request that was late. The one without an answer is out of order there for good.
    """
    producer = idempotent()
    before = identity(producer)
    log = producer.cluster.logs[0]
    values = append_two_and_hear_of_the_second(producer)
    log.delete_records()
    log.producers[before.id] = ProducerState(before.epoch - 1)
    producer.finish()
    assert errors(producer) == []
    assert log.values[2:] == [*values, values[0]]
    assert identity(producer) == Identity(before.id, before.epoch + 1)


def test_what_a_restarted_broker_takes_for_out_of_order_is_not_appended_twice() -> None:
    """It knows of the last batch alone, as its snapshot has no more. What is before that may be there, and is: its
    records are given up in their time, and those after them go on.
    """
    producer = idempotent()
    before = identity(producer)
    log = producer.cluster.logs[0]
    values = append_two_and_hear_of_the_second(producer)
    known = log.producers[before.id].batches
    while len(known) > 1:
        known.popleft()
    producer.finish()
    assert [type(each) for each in errors(producer)] == [KafkaTimeoutError]
    values.append(producer.send(0))
    producer.finish()
    assert log.values[2:] == values
    assert identity(producer) == before


def append_two_and_hear_of_the_second(producer: SimulatedProducer) -> list[bytes]:
    """Both are on their way at once; what is answered of the first leaves open whether it stays."""
    producer.accumulator.calm()
    codes = [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    producer.cluster.refuse_after = lambda _: codes.pop() if codes else ErrorCode.NONE
    values = []
    for _ in range(2):
        values.append(producer.send(0))
        producer.now_ms += 10
        producer.work()
    assert producer.cluster.connections[0].in_flight == 2
    for _ in range(2):
        producer.cluster.run_next(0)
        producer.cluster.answer_next(0)
    return values


def test_an_answer_that_does_not_say_where_the_log_begins_is_asked_for_again() -> None:
    producer = idempotent()
    before = identity(producer)
    log = producer.cluster.logs[0]
    log.delete_records()
    begins, log.start_offset = log.start_offset, -1
    value = producer.send(0)
    for _ in range(20):
        producer.step()
        producer.now_ms += 50
    assert producer.outcomes[value] == []
    assert identity(producer) == before
    log.start_offset = begins
    producer.finish()
    assert errors(producer) == []
    assert identity(producer).epoch == before.epoch + 1


def test_after_the_last_epoch_comes_another_id() -> None:
    producer = idempotent()
    assert producer.ids is not None
    before = identity(producer)
    producer.ids.sequences.identified(Identity(before.id, LAST_EPOCH))
    log = producer.cluster.logs[0]
    producer.send(0)
    producer.finish()
    log.delete_records()
    value = producer.send(0)
    # Of a partition that nobody has touched.
    other = producer.send(1)
    producer.finish()
    assert errors(producer) == []
    assert (log.values[-1], producer.cluster.logs[1].values) == (value, [other])
    assert identity(producer) == Identity(before.id + 1, 0)


# Transactions --------------------------------------------------------------------------------------------------------


def transactional(*, newest_init: int = 5) -> Program:
    """A program in the first version of transactions, which has committed one record to partition 0."""
    program = Program(is_v2=False)
    oldest, _ = program.cluster.ranges[ApiKey.INIT_PRODUCER_ID]
    program.cluster.ranges[ApiKey.INIT_PRODUCER_ID] = oldest, newest_init
    for log in program.cluster.logs.values():
        log.refuses_unknown = True
    program.initialize()
    commit(program)
    return program


def commit(program: Program, records: int = 1) -> list[bytes]:
    """Send, each in a batch by itself, and commit."""
    program.transactions.begin()
    values = [program.producer.send(0, 150) for _ in range(records)]
    result = program.transactions.commit()
    program.go_on()
    result.get()
    return values


def test_a_transaction_outlives_the_deletion_of_earlier_ones() -> None:
    program = transactional()
    epoch = program.coordinator.epoch
    program.cluster.logs[0].delete_records()
    values = commit(program, 3)
    assert program.coordinator.committed[0][1:] == values
    assert program.coordinator.epoch == epoch, "nobody asked for another one"
    assert commit(program) == program.coordinator.committed[0][4:]


def test_batches_that_were_sent_before_are_renumbered_once() -> None:
    program = transactional()
    producer, cluster = program.producer, program.cluster
    program.transactions.begin()
    values = []
    for _ in range(3):
        values.append(producer.send(0, 150))
        # To the coordinator, to the partition's leader: not further.
        for _ in range(10):
            producer.work()
            if len(cluster.connections[0].requests) and cluster.connections[0].requests[-1].api_key == ApiKey.PRODUCE:
                break
            cluster.run_next(0)
            cluster.answer_next(0)
        producer.now_ms += 10
    assert [sent.api_key for sent in cluster.connections[0].requests] == [ApiKey.PRODUCE] * 3
    cluster.logs[0].delete_records()
    program.go_on()
    result = program.transactions.commit()
    program.go_on()
    result.get()
    assert program.coordinator.committed[0][1:] == values


@pytest.mark.parametrize("newest_init", [5, 2], ids=["next-epoch", "same-epoch"])
def test_a_transaction_whose_partition_has_lost_the_producer_is_aborted_and_the_next_goes_on(newest_init: int) -> None:
    """Not by deletion: records that were acknowledged may be gone, and what was read with them. Older brokers give no
    next epoch: there the partition begins at sequence 0 of the same one.
    """
    program = transactional(newest_init=newest_init)
    epoch = program.coordinator.epoch
    log = program.cluster.logs[0]
    log.producers.clear()
    program.transactions.begin()
    lost = [program.producer.send(0, 150) for _ in range(3)]
    result = program.transactions.commit()
    program.go_on()
    with pytest.raises(AbortableError) as caught:
        result.get()
    assert caught.value.code == ErrorCode.UNKNOWN_PRODUCER_ID
    assert all(program.producer.outcomes[value][0][1] is not None for value in lost)
    aborted = program.transactions.abort()
    program.go_on()
    aborted.get()
    assert program.coordinator.epoch == epoch + (newest_init >= 3)
    values = commit(program, 2)
    assert program.coordinator.committed[0][1:] == values
    assert not set(lost) & set(log.values)
    program.producer.check_callbacks()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING])
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_a_coordinator_that_has_forgotten_the_producer_gives_it_another_epoch(code: ErrorCode, commits: bool) -> None:
    """It answers so at the transaction's end: nothing is left to abort then."""
    program = transactional()
    transactions, cluster = program.transactions, program.cluster
    honest = cluster.handlers[ApiKey.END_TXN]
    epoch = program.coordinator.epoch

    def forgets(node: int, request: object) -> object:
        answer = honest(node, request)
        answer.error_code = code  # type: ignore[attr-defined]  # of any answer to this API
        return answer

    transactions.begin()
    program.producer.send(0)
    program.go_on()
    program.coordinator.take_over()
    program.coordinator.epoch = epoch
    cluster.handlers[ApiKey.END_TXN] = forgets  # type: ignore[assignment]  # what it gives is an answer
    result = transactions.commit() if commits else transactions.abort()
    program.go_on()
    if commits:
        with pytest.raises(AbortableError):
            result.get()
        result = transactions.abort()
        program.go_on()
    result.get()
    cluster.handlers[ApiKey.END_TXN] = honest
    assert commit(program) == program.coordinator.committed[0][1:]
