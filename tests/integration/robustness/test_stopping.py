"""Told to stop, a broker stops in order: retrying clients see no error, nothing is recovered at the next start."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.kavka_process import KavkaProcess
from tests.support.metrics_page import wait_for_metric
from tests.support.numbered_producer import PARTITIONS
from tests.support.probe import answers
from tests.support.processes import wait_until
from tests.support.producing import Producing, assert_nothing_lost_or_doubled
from tests.support.wire import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Wire,
    batch_of,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    read_values,
)

MARK = ".kafka_cleanshutdown"
FORCED = 130
STOP_TIMEOUT_S = 120.0
LONG_POLL_MS = 600_000
IN_NO_HURRY = """
import sys
from kavka.broker import main, stop_signals
stop_signals.SAME_REQUEST_S = 600.0
sys.exit(main.run(None, sys.argv[1:]))
"""


@pytest.mark.parametrize("told_by", [signal.SIGTERM, signal.SIGINT])
def test_clients_that_retry_see_no_error_when_the_broker_is_stopped_and_started(tmp_path: Path, told_by: int) -> None:
    with KavkaProcess(tmp_path) as broker:
        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "numbers", PARTITIONS)
        with (
            Producing(tmp_path, broker.bootstrap, "numbers", "c", "confluent", rate=3000) as confluent,
            Producing(tmp_path, broker.bootstrap, "numbers", "k", "kafka-python", rate=500) as kafka_python,
        ):
            producers = [confluent, kafka_python]
            for _ in range(2):
                for producer in producers:
                    producer.wait_for_more()
                os.kill(broker.process.pid, told_by)
                assert broker.process.wait(STOP_TIMEOUT_S) == 0
                assert (broker.log_dir / MARK).exists()
                assert re.search(r"level=(ERROR|CRITICAL)|trace=", broker.process.log_text()) is None
                broker.start()
                assert not (broker.log_dir / MARK).exists()
                assert not re.search(r"recover(ed|ing)|cut", broker.process.log_text()), broker.process.log_text()
            sent = sum(producer.finish() for producer in producers)

        assert [producer.errors() for producer in producers] == [[], []]
        assert assert_nothing_lost_or_doubled(broker.host, broker.port, "numbers", producers) == sent


def test_a_long_poll_is_answered_when_the_broker_stops(tmp_path: Path) -> None:
    settings = {"metrics.port": "0"}
    with KavkaProcess(tmp_path, settings) as broker, Wire(broker.host, broker.port) as client:
        create_topic(client, "quiet")
        request = fetch_request("quiet", 0, max_wait_ms=LONG_POLL_MS)
        client.send(request, FETCH_VERSION)
        # Two connections may be two network threads': no answer on another tells that this one was read.
        wait_for_metric(broker, "kafka_server_delayedoperationpurgatory_purgatorysize", lambda size: size == 1)
        started_at = time.monotonic()
        os.kill(broker.process.pid, signal.SIGTERM)

        answer = client.answer(request, FETCH_VERSION)

        assert answer.responses[0].partitions[0].error_code == 0
        assert client.closed_by_peer()
        assert broker.process.wait(STOP_TIMEOUT_S) == 0
        assert time.monotonic() - started_at < LONG_POLL_MS / 2000


def test_what_was_received_before_the_stop_is_answered_or_not_there(tmp_path: Path) -> None:
    """A pipeline of produce requests is cut somewhere: answers and log agree about where, whatever the place."""
    with KavkaProcess(tmp_path) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "cut")
            batch = batch_of([b"x" * 1000], timestamp_ms=time.time_ns() // 1_000_000)
            request = produce_request("cut", batch)
            for _ in range(200):
                client.send(request, PRODUCE_VERSION)
            os.kill(broker.process.pid, signal.SIGTERM)
            answered = 0
            try:
                while True:
                    answer = client.answer(request, PRODUCE_VERSION)
                    assert answer.responses[0].partition_responses[0].base_offset == answered
                    answered += 1
            except ConnectionError:
                pass
            assert broker.process.wait(STOP_TIMEOUT_S) == 0
        broker.start()
        with Wire(broker.host, broker.port) as client:
            there = len(read_values(client, "cut"))
    assert there == answered


def test_the_second_signal_stops_at_once_and_the_next_start_recovers(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "kept", 50)
            for partition in range(50):
                assert produce(client, "kept", _batch(), partition=partition).error_code == 0
        # A stopped process takes both signals at once when it goes on.
        os.kill(broker.process.pid, signal.SIGSTOP)
        os.kill(broker.process.pid, signal.SIGTERM)
        os.kill(broker.process.pid, signal.SIGINT)
        os.kill(broker.process.pid, signal.SIGCONT)
        code = broker.process.wait(STOP_TIMEOUT_S)

        assert code == FORCED
        assert "second signal" in broker.process.log_text()
        assert not (broker.log_dir / MARK).exists()
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert [len(read_values(client, "kept", partition=partition)) for partition in range(50)] == [1] * 50


def test_a_hangup_stops_in_order(tmp_path: Path) -> None:
    class FromATerminal(KavkaProcess):
        def command(self) -> list[str]:
            # The tests themselves may have been started to outlive theirs.
            return ["env", "--default-signal=HUP", *super().command()]

    with FromATerminal(tmp_path) as broker:
        os.kill(broker.process.pid, signal.SIGHUP)

        assert broker.process.wait(STOP_TIMEOUT_S) == 0
        assert (broker.log_dir / MARK).exists()
        assert "signal=SIGHUP" in broker.process.log_text()


def test_a_broker_that_was_started_to_outlive_its_terminal_ignores_a_hangup(tmp_path: Path) -> None:
    class Nohup(KavkaProcess):
        def command(self) -> list[str]:
            return ["nohup", *super().command()]

    with Nohup(tmp_path) as broker:
        os.kill(broker.process.pid, signal.SIGHUP)
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "served")
        assert broker.process.stop() == 0
        assert "signal=SIGTERM" in broker.process.log_text()


def test_a_signal_that_is_delivered_twice_is_one(tmp_path: Path) -> None:
    """`timeout` signals its child and then its whole group."""

    class InNoHurry(KavkaProcess):
        def command(self) -> list[str]:
            # Twenty signals, and a broker that hears of them, may take a busy machine longer than a second.
            words = [each for each in super().command()[2:] if each != "--override"]
            return [sys.executable, "-c", IN_NO_HURRY, *words]

    with InNoHurry(tmp_path) as broker:
        for _ in range(20):
            try:
                os.kill(broker.process.pid, signal.SIGTERM)
            except ProcessLookupError:
                break

        assert broker.process.wait(STOP_TIMEOUT_S) == 0
        assert (broker.log_dir / MARK).exists()


def test_a_stop_while_clients_do_nothing_or_half_of_something_is_quick(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as broker:
        silent = [Wire(broker.host, broker.port) for _ in range(20)]
        for half in silent[10:]:
            half.socket.sendall(b"\x00\x00\x10\x00 the first part of something")
        wait_until(lambda: answers(broker.host, broker.port), 60, "does not answer")
        # It is killed where that takes too long.
        code = broker.process.stop(STOP_TIMEOUT_S)
        for each in silent:
            assert each.closed_by_peer()
            each.close()

    assert code == 0


def _batch() -> bytes:
    return batch_of([b"x"], timestamp_ms=time.time_ns() // 1_000_000)
