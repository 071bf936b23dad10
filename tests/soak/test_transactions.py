"""Many transactional producers, and a broker that is stopped and killed under them: what was committed stays."""

import faulthandler
import os
import random
import threading
import time
from pathlib import Path

import pytest

from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.topics import create_topic
from tests.support.transaction_journal import Journal, View, committed_view
from tests.support.transaction_workers import LibraryWorker, WireWorker, Worker
from tests.support.transactions import READ_COMMITTED, READ_UNCOMMITTED, end_offset, stable_offset
from tests.support.wire import Wire

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]
TOPICS, PARTITIONS, WORKERS = ("visits", "orders", "payments"), 3, 6
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}
QUIET_S = (1.0, 4.0)
"""How long the broker is left alone."""
TIME_TO_SETTLE_S = 300.0
"""Longer than a producer has patience: it then says itself what it waited for."""


def seconds() -> float:
    return float(os.environ.get("SOAK_SECONDS", "30"))


def test_transactions_stand_or_fall_as_their_producers_were_told(tmp_path: Path) -> None:
    places = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
    journal, stop, dice = Journal(), threading.Event(), random.Random()
    with KavkaProcess(tmp_path, SETTINGS) as broker:
        for topic in TOPICS:
            create_topic(broker, topic, partitions=PARTITIONS)
        by_library = [LibraryWorker(f"library-{n}", broker, places, journal, stop) for n in range(WORKERS)]
        workers: list[Worker] = [*by_library]
        workers += [WireWorker(f"wire-{n}", broker, places, journal, stop) for n in range(WORKERS)]
        for worker in workers:
            worker.start()
        until_s = time.monotonic() + seconds()
        view: View = {}
        bounces = 0
        while time.monotonic() < until_s:
            stop.wait(dice.uniform(*QUIET_S))
            assert [worker.failure for worker in workers if worker.failure] == []
            view = _later(view, committed_view(broker, places))
            bounce(broker, kills=dice.random() < 0.5)
            bounces += 1
            view = _later(view, committed_view(broker, places))
        stop.set()
        for worker in workers:
            worker.join(TIME_TO_SETTLE_S)
        assert [worker.failure for worker in workers if worker.failure] == []
        stuck = [worker.name for worker in workers if worker.is_alive()]
        if stuck:
            faulthandler.dump_traceback(all_threads=True)
            print(stuck, described(broker, stuck))
        assert stuck == []
        settle(broker, places)
        view = _later(view, committed_view(broker, places))
        for kills in (True, False):
            bounce(broker, kills=kills)
            assert committed_view(broker, places) == view
            for worker in by_library:
                assert stable_offset(broker, worker.name, *places[0]) in worker.possible_offsets
    print(f"{bounces} restarts", dict(journal.counts))
    assert journal.contradictions(view) == []
    assert journal.surprises == []


def bounce(broker: KavkaProcess, *, kills: bool) -> None:
    """Stop or kill the broker, and start it again."""
    if kills:
        broker.kill()
    else:
        broker.stop()
    broker.start()


def described(broker: KavkaProcess, names: list[str]) -> object:
    """What the coordinator says of those transactional ids."""
    with Wire(broker.host, broker.port) as wire:
        return wire.ask(DescribeTransactionsRequest(transactional_ids=names), 0)


def settle(broker: KavkaProcess, places: list[tuple[str, int]]) -> None:
    """Wait until no transaction is open anywhere: all have ended, or their time is up."""
    for topic, index in places:
        wait_until(
            lambda topic=topic, index=index: (  # type: ignore[misc]  # mypy cannot tell a lambda's defaults
                end_offset(broker, topic, READ_COMMITTED, index) == end_offset(broker, topic, READ_UNCOMMITTED, index)
            ),
            TIME_TO_SETTLE_S,
            f"a transaction on {topic}-{index} never ends",
        )


def _later(before: View, after: View) -> View:
    """What is seen now, which begins with what was seen before."""
    for place, rows in before.items():
        assert after[place][: len(rows)] == rows, f"what was seen on {place} is not seen any more"
    return after
