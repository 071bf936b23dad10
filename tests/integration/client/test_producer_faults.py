"""Brokers killed, frozen and cut off under the producer: nothing acknowledged lost, nothing doubled or out of order,
each callback once, and what fails fails with its error and in its time.
"""

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kavka.client import Admin, Producer
from kavka.client.admin.types.topics import NewTopic
from kavka.client.api_errors import AbortableError, ClientClosedError, KafkaError, KafkaTimeoutError, TopicExistsError
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.errors import BufferExhaustedError, TransactionStateError
from tests.integration.client.test_producer import TIMEOUT_S, create, read
from tests.support.client_brokers import KAVKA, NEWER
from tests.support.cutting_proxy import CuttingProxy
from tests.support.processes import let_pass, wait_until
from tests.support.server import RunningServer
from tests.support.time_limits import within

PARTITIONS = 2


class Numbered:
    """Sends numbers in turn to the partitions, and notes what it is told."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.producer = producer
        self.topic = topic
        self.sent = 0
        self.heard: Counter[int] = Counter()
        self.offsets: dict[int, int] = {}
        self.errors: dict[int, KafkaError] = {}

    def send(self, count: int) -> None:
        for _ in range(count):
            number = self.sent
            self.sent += 1

            def note(metadata: RecordMetadata, error: KafkaError | None, number: int = number) -> None:
                self.heard[number] += 1
                if error is None:
                    self.offsets[number] = metadata.offset
                else:
                    self.errors[number] = error

            self.producer.send(self.topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=note)

    def check(self, bootstrap: str) -> None:
        """Each callback came once, and the logs have what was acknowledged, each once and in order."""
        assert self.heard == Counter(range(self.sent))
        for partition, rows in enumerate(read(bootstrap, self.topic, PARTITIONS)):
            numbers = [int(row.value) for row in rows]
            assert numbers == sorted(set(numbers))
            found = {int(row.value): row.offset for row in rows}
            acknowledged = {number: at for number, at in self.offsets.items() if number % PARTITIONS == partition}
            assert {number: found.get(number) for number in acknowledged} == acknowledged
            # What failed may be there, or not.
            assert found.keys() - acknowledged.keys() <= self.errors.keys()


@contextmanager
def frozen(broker: Any) -> Iterator[None]:
    pid = broker.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        # Each thread stops by itself, and may answer until then.
        wait_until(lambda: _states(pid) == {"T"}, TIMEOUT_S, "it goes on")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    """Of a process's threads, as the kernel has them."""
    return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()}


def impatient(bootstrap: str, **settings: Any) -> Producer:
    return Producer(bootstrap_servers=bootstrap, linger_ms=0, **{"request_timeout_ms": 1_000, **settings})


def test_a_frozen_broker_is_waited_for(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    with impatient(broker.bootstrap, batch_size=500) as producer:
        numbered = Numbered(producer, topic)
        for _ in range(2):
            numbered.send(500)
            with frozen(broker):
                numbered.send(500)
                # Longer than a request may take: it is sent again, and the broker gets it twice.
                let_pass(2.5)
        producer.flush(TIMEOUT_S * 1000)
    assert not numbered.errors
    numbered.check(broker.bootstrap)


def test_what_expires_fails_in_its_time_and_the_rest_goes_on(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    with impatient(broker.bootstrap, delivery_timeout_ms=2_000, batch_size=500) as producer:
        numbered = Numbered(producer, topic)
        numbered.send(200)
        producer.flush()
        with frozen(broker):
            numbered.send(200)
            with within(2_000):
                producer.flush()
        assert {type(error) for error in numbered.errors.values()} == {KafkaTimeoutError}

        def goes_on() -> bool:
            """Whether nothing of another hundred expires: a broker that was frozen may be slow yet."""
            expired = len(numbered.errors)
            numbered.send(100)
            producer.flush()
            return len(numbered.errors) == expired

        wait_until(goes_on, TIMEOUT_S, "nothing gets through")
    assert len(numbered.errors) >= 200
    numbered.check(broker.bootstrap)
    assert max(numbered.offsets) == numbered.sent - 1


@pytest.mark.parametrize("broker_kind", [KAVKA])
def test_connections_cut_again_and_again_lose_and_double_nothing(own_broker: Any, topic: str) -> None:
    broker = own_broker({})
    create(broker.bootstrap, topic, PARTITIONS)
    with CuttingProxy(broker.host, broker.port) as proxy:
        broker.stop()
        broker.overrides["advertised.listeners"] = f"PLAINTEXT://{proxy.bootstrap}"
        broker.start()
        with impatient(proxy.bootstrap, batch_size=300) as producer:
            numbered = Numbered(producer, topic)
            for turn in range(12):
                numbered.send(300)
                proxy.swallows_answers = turn % 3 == 1
                proxy.swallows_requests = turn % 3 == 2
                let_pass(0.2)
                proxy.cut()
                proxy.mend()
            producer.flush(TIMEOUT_S * 1000)
        assert not numbered.errors
        numbered.check(proxy.bootstrap)


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_exhausted_memory_fails_in_its_time(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic)
    with impatient(broker.bootstrap, buffer_memory=32_768, max_block_ms=500) as producer:
        producer.send(topic, b"first").result(TIMEOUT_S)
        with frozen(broker):
            futures = [producer.send(topic, b"x" * 10_000) for _ in range(3)]
            with within(500, least_ms=400):
                refused = producer.send(topic, b"x" * 10_000)
            assert isinstance(refused.exception(0), BufferExhaustedError)
        assert all(future.result(TIMEOUT_S).offset >= 0 for future in futures[:2])


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_transactions_go_on_over_a_killed_broker(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    committed = []
    # A request for the id that is sent again may be done before the first one, which fences whom it was answered to.
    with impatient(broker.bootstrap, transactional_id=topic, request_timeout_ms=30_000) as producer:
        producer.init_transactions()
        for turn in range(6):
            producer.begin_transaction()
            for number in range(10):
                producer.send(topic, b"%d" % (turn * 10 + number), partition=number % PARTITIONS)
            if turn in (1, 3):
                broker.kill()
                broker.start()
            try:
                producer.commit_transaction()
                committed.append(turn)
            except AbortableError:
                producer.abort_transaction()
    expected = [number for turn in committed for number in range(turn * 10, turn * 10 + 10)]
    rows = read(broker.bootstrap, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        assert [int(row.value) for row in rows[partition]] == expected[partition::PARTITIONS]
    assert len(committed) >= 4


def test_close_is_over_in_time_and_says_what_it_left(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic)
    producer = impatient(broker.bootstrap)
    producer.send(topic, b"first").result(TIMEOUT_S)
    with frozen(broker):
        future = producer.send(topic, b"left")
        with within(500):
            producer.close(500)
    assert isinstance(future.exception(0), ClientClosedError)
    with pytest.raises(ClientClosedError):
        producer.send(topic, b"")


UNCLOSED = """
    import os, sys
    from kavka.client import Producer
    from kavka.client.api_errors import UsedAfterForkError

    producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=100_000)
    producer.send(sys.argv[2], b"first")
    child = os.fork()
    if child == 0:
        try:
            producer.send(sys.argv[2], b"child")
        except UsedAfterForkError:
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    producer.send(sys.argv[2], b"second")
"""


def test_what_nobody_closed_is_flushed_at_exit_and_no_child_may_use_it(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    command = [sys.executable, "-c", textwrap.dedent(UNCLOSED), bootstrap, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    (rows,) = read(bootstrap, topic)
    assert [row.value for row in rows] == [b"first", b"second"]


def test_a_topic_made_anew_under_its_name_is_another(broker: RunningServer, topic: str) -> None:
    """Its id is another (KIP-516), and it has fewer partitions; the producer goes on with it."""
    with (
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        impatient(
            # By name, as brokers before 4.1 take them, nothing tells that it is another topic but its metadata's age.
            broker.bootstrap,
            metadata_max_age_ms=1_000,
        ) as producer,
    ):
        admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])
        for partition in range(3):
            producer.send(topic, b"before", partition=partition).result(TIMEOUT_S)
        admin.delete_topics([topic])
        wait_until(lambda: _created(admin, topic), TIMEOUT_S, "it is not gone")
        futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(200)]
        assert [future.result(TIMEOUT_S).offset for future in futures] == list(range(200))
        wait_until(lambda: len(producer.partitions_for(topic)) == 1, TIMEOUT_S, "it has three partitions still")
        assert producer.send(topic, b"200", key=b"any").result(TIMEOUT_S).partition == 0
    (rows,) = read(broker.bootstrap, topic)
    assert [int(row.value) for row in rows] == list(range(201))


def _created(admin: Admin, topic: str) -> bool:
    """Whether it could be made anew: not before the one of that name is gone, marks and all."""
    try:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    except TopicExistsError:
        return False
    return True


@pytest.mark.parametrize("broker_kind", NEWER, indirect=True)
def test_what_is_sent_to_a_topic_that_was_deleted_expires(own_broker: Any, topic: str) -> None:
    broker = own_broker({"auto.create.topics.enable": "false"})
    create(broker.bootstrap, topic)
    with (
        impatient(broker.bootstrap, delivery_timeout_ms=3_000) as producer,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        # In the short time that the producer gives it a busy machine may not be done.
        wait_until(lambda: producer.send(topic, b"").exception(TIMEOUT_S) is None, TIMEOUT_S, "nothing gets through")
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics(), TIMEOUT_S, "it is not gone")
        with within(3_000):
            assert isinstance(producer.send(topic, b"").exception(TIMEOUT_S), KafkaTimeoutError)


def test_calls_for_transactions_time_out_and_may_be_repeated(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic)
    # A request for the id that is sent again may be done before the first one, which fences whom it was answered to.
    with impatient(broker.bootstrap, transactional_id=topic, request_timeout_ms=30_000) as producer:
        with frozen(broker), pytest.raises(KafkaTimeoutError):
            producer.init_transactions(timeout_ms=500)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"").result(TIMEOUT_S)
        with frozen(broker):
            with pytest.raises(KafkaTimeoutError):
                producer.commit_transaction(timeout_ms=500)
            with pytest.raises(TransactionStateError, match="commit_transaction"):
                producer.abort_transaction()
        producer.commit_transaction()
    (rows,) = read(broker.bootstrap, topic)
    assert len(rows) == 1
