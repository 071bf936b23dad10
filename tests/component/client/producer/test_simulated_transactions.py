"""Transactions over a network and a coordinator that fail: what was committed counts once and in order, and nothing
else ever counts.
"""

import random
from collections.abc import Callable

import pytest

from kavka.client.api_errors import AbortableError, FatalError
from kavka.client.consumer.group.port import ConsumerGroupMetadata, OffsetAndMetadata
from kavka.client.producer.transaction_requests import Result
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from tests.component.client.producer.simulated_cluster import SimulatedCluster
from tests.component.client.producer.simulated_coordinator import GROUP, SimulatedCoordinator
from tests.component.client.producer.simulated_producer import SimulatedProducer
from tests.component.client.producer.test_simulated_faults import REFUSALS, SMALL

SEEDS = range(40)


class Driver:
    """One program that opens, fills and ends transactions, while things fail by chance."""

    def __init__(self, seed: int, *, is_v2: bool, delivery_timeout_ms: float = 30_000) -> None:
        self.dice = random.Random(seed)
        self.cluster = SimulatedCluster(self.dice)
        self.coordinator = SimulatedCoordinator(self.cluster, self.dice, is_v2=is_v2)
        accumulator = SMALL._replace(delivery_timeout_ms=delivery_timeout_ms)
        self.producer = SimulatedProducer(self.cluster, accumulator=accumulator, transactional=True)
        transactions = self.producer.transactions
        assert transactions is not None
        self.transactions = transactions
        self.expected: dict[int, list[bytes]] = {number: [] for number in self.cluster.logs}
        self.sends_offsets = False
        self.expected_offsets: dict[int, int] = {}
        self.read = 0
        self.offsets: dict[int, int] = {}
        """What was sent in the present transaction."""

    def happen(self, *, cuts: float = 0.03) -> None:
        """One step of the world's."""
        dice, cluster = self.dice, self.cluster
        node = dice.choice(list(cluster.nodes))
        chance = dice.random()
        if chance < 0.3:
            self.producer.work()
        elif chance < 0.5:
            cluster.run_next(node)
        elif chance < 0.7:
            cluster.answer_next(node)
        elif chance < 0.7 + cuts:
            cluster.cut(node)
        elif chance < 0.75:
            cluster.run_stray()
        elif chance < 0.77:
            cluster.move(dice.choice(list(cluster.logs)))
        elif chance < 0.78:
            self.coordinator.node = dice.choice(list(cluster.nodes))
        elif self.sends_offsets and chance < 0.79:
            self.coordinator.group_node = dice.choice(list(cluster.nodes))
        elif chance < 0.82:
            self.producer.update()
        else:
            self.producer.now_ms += dice.choice((1, 10, 100, 300))

    def wait(self, result: Result) -> None:
        """Until it is done; raise what it raises."""
        for _ in range(20_000):
            if result.is_done:
                result.get()
                return
            self.happen()
        raise AssertionError("a call never came to an end")

    def transaction(self, ends: Callable[[], Result], records: int) -> list[tuple[int, bytes]]:
        """Open one, fill it and end it: what was sent. Raises what its end raises."""
        self.transactions.begin()
        sent = []
        for _ in range(records):
            if self.dice.random() < 0.5:
                self.happen()
            partition = self.dice.choice(list(self.cluster.logs))
            self.transactions.check_open()
            sent.append((partition, self.producer.send(partition, self.dice.choice((0, 10, 60)))))
        if self.sends_offsets and self.dice.random() < 0.7:
            self.read += 1
            self.offsets = dict.fromkeys(range(self.dice.randint(1, 3)), self.read)
            whole = {TopicPartition("sources", number): OffsetAndMetadata(at) for number, at in self.offsets.items()}
            self.wait(self.transactions.send_offsets(whole, ConsumerGroupMetadata(GROUP)))
        self.wait(ends())
        return sent

    def run(self, rounds: int) -> None:
        """Transactions that are committed or aborted; one that cannot be committed is aborted."""
        self.wait(self.transactions.initialize())
        for _ in range(rounds):
            commits = self.dice.random() < 0.7
            self.offsets = {}
            try:
                sent = self.transaction(
                    self.transactions.commit if commits else self.transactions.abort, self.dice.randint(0, 12)
                )
            except AbortableError:
                self.wait(self.transactions.abort())
                continue
            if commits:
                self.expected_offsets |= self.offsets
                for partition, value in sent:
                    self.expected[partition].append(value)


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_committed_counts_once_and_nothing_else(seed: int, is_v2: bool) -> None:
    driver = Driver(seed, is_v2=is_v2)
    dice = driver.dice
    driver.coordinator.is_troubled = True
    driver.cluster.refuse = lambda _: dice.choice(REFUSALS) if dice.random() < 0.1 else ErrorCode.NONE
    driver.run(12)
    assert driver.coordinator.committed == driver.expected
    driver.producer.check_callbacks()


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", SEEDS)
def test_expired_batches_abort_their_transaction_and_the_next_goes_on(seed: int, is_v2: bool) -> None:
    driver = Driver(seed, is_v2=is_v2, delivery_timeout_ms=500)
    driver.run(12)
    assert driver.coordinator.committed == driver.expected
    driver.producer.check_callbacks()


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", range(10))
def test_refused_records_abort_their_transaction_and_the_next_goes_on(seed: int, is_v2: bool) -> None:
    driver = Driver(seed, is_v2=is_v2)
    driver.cluster.refuse = lambda _: ErrorCode.INVALID_RECORD if driver.dice.random() < 0.1 else ErrorCode.NONE
    driver.run(15)
    assert driver.coordinator.committed == driver.expected
    driver.producer.check_callbacks()


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_count_with_their_transactions_however_late_requests_come(seed: int, is_v2: bool) -> None:
    driver = Driver(seed, is_v2=is_v2)
    dice = driver.dice
    driver.sends_offsets = driver.coordinator.is_troubled = True
    driver.coordinator.have_late_requests()
    driver.cluster.refuse = lambda _: dice.choice(REFUSALS) if dice.random() < 0.1 else ErrorCode.NONE
    driver.run(15)
    assert driver.coordinator.committed == driver.expected
    assert driver.coordinator.committed_offsets == driver.expected_offsets != {}
    driver.producer.check_callbacks()


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", range(10))
def test_a_late_request_for_the_id_fences_and_commits_nothing(seed: int, is_v2: bool) -> None:
    """The first one's, of whom coordinators do not know that it is the same producer."""
    driver = Driver(seed, is_v2=is_v2)
    driver.sends_offsets = True
    driver.coordinator.have_late_requests(ApiKey.INIT_PRODUCER_ID)
    late = driver.transactions.initialize()
    asked = ApiKey.FIND_COORDINATOR
    connection = driver.cluster.connections[driver.coordinator.node]
    while asked != ApiKey.INIT_PRODUCER_ID:
        driver.producer.work()
        for node in driver.cluster.busy():
            if connection.requests:
                asked = ApiKey(connection.requests[-1].api_key)
            if asked != ApiKey.INIT_PRODUCER_ID:
                driver.cluster.run_next(node)
                driver.cluster.answer_next(node)
    # It has arrived, and takes its time; the client asks anew.
    (sent,) = connection.requests
    driver.cluster.cut(driver.coordinator.node)
    driver.cluster.strays.clear()
    driver.wait(late)
    driver.transactions.begin()
    driver.producer.send(0)
    for _ in range(20):
        driver.producer.step()
        driver.producer.now_ms += 10
    driver.cluster._run(driver.coordinator.node, sent)
    with pytest.raises((FatalError, AbortableError)) as caught:
        driver.wait(driver.transactions.commit())
    if isinstance(caught.value, AbortableError):
        with pytest.raises(FatalError):
            driver.wait(driver.transactions.abort())
    assert driver.coordinator.committed == driver.expected
    assert driver.coordinator.committed_offsets == {}


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
def test_who_was_fenced_cannot_go_on(is_v2: bool) -> None:
    driver = Driver(1, is_v2=is_v2)
    driver.run(3)
    driver.coordinator.take_over()
    with pytest.raises((FatalError, AbortableError)) as caught:
        driver.transaction(driver.transactions.commit, 5)
    if isinstance(caught.value, AbortableError):
        with pytest.raises(FatalError):
            driver.wait(driver.transactions.abort())
    with pytest.raises(FatalError):
        driver.transactions.begin()
    assert driver.transactions.is_idle
    driver.producer.finish()
    driver.producer.check_callbacks()


def test_a_close_aborts_what_is_open_and_waits_no_longer_than_the_coordinator() -> None:
    driver = Driver(3, is_v2=True)
    driver.wait(driver.transactions.initialize())
    driver.transactions.begin()
    driver.producer.send(0)
    sender = driver.producer.sender
    sender.closing(driver.producer.now_ms)
    driver.coordinator.node = 1 - driver.coordinator.node
    driver.cluster.not_ready = {0, 1}
    for _ in range(100):
        driver.producer.work()
    assert not sender.is_idle()
    driver.producer.now_ms += 60_000
    driver.producer.work()
    # The record has expired or waits still; the transaction is the coordinator's by now.
    assert driver.transactions.is_idle


def test_who_never_got_an_id_is_closed_at_once() -> None:
    driver = Driver(3, is_v2=True)
    driver.cluster.not_ready = {0, 1}
    driver.transactions.initialize()
    driver.producer.work()
    driver.producer.sender.closing(driver.producer.now_ms)
    assert driver.producer.sender.is_idle()
