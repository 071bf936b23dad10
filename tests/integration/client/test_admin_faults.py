"""Our administrator and a broker that stands still, is killed, and comes back: each call ends in time and says why."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kavka.client import Admin
from kavka.client.admin import NewTopic
from kavka.client.api_errors import (
    ClientClosedError,
    DisconnectedError,
    InvalidReplicationFactorError,
    KafkaTimeoutError,
    TopicExistsError,
    UsedAfterForkError,
)
from tests.support.client_brokers import KAVKA
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.server import RunningServer

GRACE_S = 30.0
"""What a busy machine may add to a time limit."""


def test_a_broker_that_stands_still_costs_no_more_than_the_time_limit(broker: RunningServer, topic: str) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            # All of its threads: one that runs does so for a moment yet.
            wait_until(lambda: _is_stopped(broker.process.pid), 60, "it goes on")
            began = time.monotonic()
            with pytest.raises(KafkaTimeoutError, match="was not answered in time"):
                admin.list_topics(timeout_ms=1_500)
            assert 1.5 <= time.monotonic() - began < 1.5 + GRACE_S
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        assert topic in admin.list_topics()


def _is_stopped(pid: int) -> bool:
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return bool(stats) and all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_a_broker_that_is_gone_is_named_and_found_again(broker: RunningServer, topic: str) -> None:
    with Admin(bootstrap_servers=broker.bootstrap, metadata_recovery_strategy="rebootstrap") as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        broker.kill()
        with pytest.raises(KafkaTimeoutError, match=str(broker.port)):
            admin.list_topics(timeout_ms=2_000)
        with pytest.raises((KafkaTimeoutError, DisconnectedError)):
            admin.create_topics([NewTopic(f"{topic}.lost", 1, 1)], timeout_ms=1_000)

        with ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(admin.delete_topics, [topic], timeout_ms=120_000)
            broker.start()
            assert waiting.result() == {topic: None}
        wait_until(lambda: topic not in admin.list_topics(), 60, "still there")


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_what_is_repeated_over_a_restart_is_done_once(broker: RunningServer, topic: str) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        stopping = threading.Event()

        def make_and_delete() -> list[str]:
            """Errors that should not be."""
            wrong = []
            number = 0
            while not stopping.is_set():
                number += 1
                name = f"{topic}.{number}"
                try:
                    admin.create_topics([NewTopic(name, 1, 1)], timeout_ms=120_000)
                except (DisconnectedError, KafkaTimeoutError, TopicExistsError, InvalidReplicationFactorError):
                    # Nobody knows whether it is there; or KRaft's controller, that its broker is in service.
                    continue
                try:
                    admin.delete_topics([name], timeout_ms=120_000)
                except Exception as error:  # noqa: BLE001  # whatever it is, the test shows it
                    wrong.append(repr(error))
            return wrong

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(make_and_delete)
            wait_until(lambda: admin.metrics["response-total"] > 20, 60, "it does nothing")
            for _ in range(2):
                broker.stop()
                broker.start()
            stopping.set()
            assert running.result() == []


def test_a_closed_client_lets_its_calls_go(kavka: KavkaProcess) -> None:
    admin = Admin(bootstrap_servers=kavka.bootstrap)
    admin.list_topics()
    names = {thread.name for thread in threading.enumerate()}
    assert any(name.startswith("kavka-admin") for name in names)
    with ThreadPoolExecutor(1) as pool:
        # No such broker: it waits.
        waiting = pool.submit(admin.describe_log_dirs, [99])
        wait_until(lambda: not waiting.done(), 5, "it is over already")
        admin.close(timeout_ms=500)
        with pytest.raises(ClientClosedError):
            waiting.result()
    with pytest.raises(ClientClosedError):
        admin.list_topics()
    assert not any(thread.name.startswith("kavka-admin") for thread in threading.enumerate())


def _in_child(admin: Admin, answers: "multiprocessing.SimpleQueue[str]") -> None:
    try:
        admin.list_topics(timeout_ms=5_000)
    except Exception as error:  # noqa: BLE001  # what kind it is, is the question
        answers.put(type(error).__name__)


def test_after_a_fork_the_child_is_refused_and_the_parent_goes_on(kavka: KavkaProcess) -> None:
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    with Admin(bootstrap_servers=kavka.bootstrap) as admin:
        admin.list_topics()
        child = context.Process(target=_in_child, args=(admin, answers))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert answers.get() == UsedAfterForkError.__name__
        admin.list_topics()
