"""What all three clients have in common: when their threads begin and end, forks, exits, and brokers that are gone."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kavka.client import Admin, Consumer, Producer
from kavka.client.api_errors import ClientClosedError, KafkaTimeoutError, UsedAfterForkError
from tests.support.client_brokers import KAVKA
from tests.support.processes import wait_until
from tests.support.server import RunningServer

TIMEOUT_S = 90.0
CLOSE_WAIT = "08"


def ours() -> list[str]:
    """The clients' threads of this process."""
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("kavka-"))


def read_all(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """So many records from the beginning of the topic's only partition."""
    values: list[bytes] = []

    def read() -> bool:
        values.extend(record.value or b"" for record in consumer.poll(200))
        return len(values) >= count

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        wait_until(read, TIMEOUT_S, lambda: f"{len(values)} of {count}")
    return values


def test_threads_begin_with_the_first_need_and_end_with_close(bootstrap: str, topic: str) -> None:
    before = ours()
    producer = Producer(bootstrap_servers=bootstrap, client_id="p")
    consumer = Consumer(bootstrap_servers=bootstrap, client_id="c", auto_offset_reset="earliest")
    admin = Admin(bootstrap_servers=bootstrap, client_id="a")
    consumer.assign([(topic, 0)])
    assert ours() == before
    with producer, consumer, admin:
        producer.send(topic, b"x").result(TIMEOUT_S)
        consumer.poll(1)
        assert admin.describe_cluster().nodes
        assert ours() == sorted([*before, "kavka-admin-a", "kavka-consumer-c", "kavka-producer-p"])
    assert ours() == before
    uses: list[Callable[[], Any]] = [
        lambda: producer.send(topic, b"x"),
        lambda: consumer.poll(1),
        admin.describe_cluster,
    ]
    for use in uses:
        with pytest.raises(ClientClosedError):
            use()
    for client in (producer, consumer, admin):
        client.close()


def test_after_a_fork_the_child_has_no_clients_and_the_parents_go_on(bootstrap: str, topic: str) -> None:
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap) as unused,
    ):
        producer.send(topic, b"before").result(TIMEOUT_S)
        consumer.assign([(topic, 0)])
        consumer.poll(1)
        admin.describe_cluster()
        uses: list[Callable[[], Any]] = [
            lambda: producer.send(topic, b"child"),
            lambda: unused.send(topic, b"child"),
            lambda: consumer.poll(1),
            admin.describe_cluster,
        ]
        child = os.fork()
        if child == 0:
            code = 100
            try:
                code = _raising(uses)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        producer.send(topic, b"after").result(TIMEOUT_S)
        admin.describe_cluster()
    assert read_all(bootstrap, topic, 2) == [b"before", b"after"]


def _raising(uses: list[Callable[[], Any]]) -> int:
    """In the child: 0 if each raises as it should, else the number of the first that does not."""
    for number, use in enumerate(uses, 1):
        with contextlib.suppress(UsedAfterForkError):
            use()
            return number
    return 0


UNCLOSED = """
import sys
from kavka.client import Producer
producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=120_000)
for number in range(1_000):
    producer.send(sys.argv[2], str(number).encode(), partition=0)
"""


def test_records_of_a_producer_that_nobody_closed_go_out_at_the_end(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        # Kafka may say for a while that a topic that is being created is unknown, which the program would print.
        producer.send(topic, b"first", partition=0).result(TIMEOUT_S)
    command = [sys.executable, "-c", UNCLOSED, bootstrap, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stderr == ""
    assert read_all(bootstrap, topic, 1_001) == [b"first", *(str(number).encode() for number in range(1_000))]


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_a_broker_that_is_gone_leaves_no_half_closed_sockets(broker: RunningServer, topic: str) -> None:
    with (
        Producer(bootstrap_servers=broker.bootstrap) as producer,
        Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        producer.send(topic, b"x").result(TIMEOUT_S)
        consumer.assign([(topic, 0)])
        consumer.poll(1)
        admin.describe_cluster()
        broker.kill()
        wait_until(lambda: half_closed(broker.port) == 0, TIMEOUT_S, "sockets in CLOSE_WAIT")
        broker.start()
        producer.send(topic, b"y").result(TIMEOUT_S)
        assert admin.describe_cluster().nodes
    assert read_all(broker.bootstrap, topic, 2) == [b"x", b"y"]


def half_closed(port: int) -> int:
    """Sockets of this machine to `port` whose peer has closed, and which are open still."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[2].split(":")[1], 16) == port and row[3] == CLOSE_WAIT for row in rows)


def freeze(pid: int) -> None:
    """Stop all threads of a process; they stop some time after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)

    def stopped() -> bool:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)

    wait_until(stopped, TIMEOUT_S, "it goes on")


def test_a_broker_that_is_frozen_is_waited_for_no_longer_than_allowed(broker: RunningServer, topic: str) -> None:
    quick: dict[str, Any] = {"request_timeout_ms": 1_000}
    with (
        Producer(bootstrap_servers=broker.bootstrap, delivery_timeout_ms=2_000, linger_ms=0, **quick) as producer,
        Admin(bootstrap_servers=broker.bootstrap, default_api_timeout_ms=2_000, **quick) as admin,
    ):
        wait_until(lambda: is_acknowledged(producer, topic, b"x"), TIMEOUT_S, "nothing gets through")
        admin.describe_cluster(timeout_ms=60_000)
        freeze(broker.process.pid)
        try:
            began = time.monotonic()
            future = producer.send(topic, b"y")
            with pytest.raises(KafkaTimeoutError):
                admin.describe_cluster()
            with pytest.raises(KafkaTimeoutError):
                future.result(TIMEOUT_S)
            assert time.monotonic() - began < TIMEOUT_S / 3
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        wait_until(lambda: is_acknowledged(producer, topic, b"z"), TIMEOUT_S, "nothing gets through")
        assert admin.describe_cluster(timeout_ms=60_000).nodes


def is_acknowledged(producer: Producer, topic: str, value: bytes) -> bool:
    """Whether it was, in the short time that the producer gives it: a busy machine may need longer."""
    error = producer.send(topic, value).exception(TIMEOUT_S)
    assert error is None or isinstance(error, KafkaTimeoutError), error
    return error is None
