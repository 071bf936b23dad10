"""A batch goes to its partitions once: when it is written again, after kill -9 at any step, beside its own zombie."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

from kavka.client import TransactionState
from kavka.pipeline.sending.marked_producer import (
    FencedWriterError,
    MarkedProducer,
    Transactions,
    TransactionTooLongError,
)
from kavka.pipeline.sending.marker_reading import NOTHING_READ, MarkersRead, read_markers
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerTopicError, marker_place
from kavka.pipeline.sending.partition_task import PartitionTask, StaleBatchError
from kavka.pipeline.sending.steps import BEGUN, COMMITTED, FENCED, MARKED, SENT
from kavka.testing import Broker
from tests.support.dying_writer import FIRST_MS, QUERY, ROWS, batch_of, task
from tests.support.processes import Process, wait_until

LONG_S = 300.0
TASK_STEPS = (FENCED, BEGUN, SENT, MARKED, COMMITTED)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as broker:
        yield broker


def written(broker: Broker, topic: str) -> dict[int, list[bytes | None]]:
    """What readers of committed records see, by partition."""
    records = broker.records(topic, committed=True)
    return {partition: [each.value for each in records.of(partition)] for partition in (0, 1)}


def whole(partitions: int = 2) -> dict[int, list[bytes]]:
    return {partition: [b"%d-%d" % (partition, number) for number in range(ROWS)] for partition in range(partitions)}


def run(writing: PartitionTask, *batches: pyarrow.RecordBatch) -> list[tuple[int, int]]:
    """Rows and rows sent of each partition."""
    return [(row["rows"], row["sent"]) for report in writing(batches) for row in report.to_pylist()]


def test_rows_arrive_with_their_times_headers_and_order_and_a_second_attempt_sends_nothing(broker: Broker) -> None:
    topic = broker.create_topic("once", 2)
    both = [batch_of(topic, 0), batch_of(topic, 1)]
    assert run(task(broker.bootstrap_servers), *both) == [(ROWS, ROWS), (ROWS, ROWS)]
    assert run(task(broker.bootstrap_servers), *both) == [(ROWS, 0), (ROWS, 0)]
    records = broker.records(topic, committed=True)
    assert [each.timestamp_ms for each in records.of(1)] == [FIRST_MS + number for number in range(ROWS)]
    assert [each.headers for each in records.of(0)[:4]] == [(("n", b"0"),), (), (), (("n", b"3"),)]
    assert written(broker, topic) == whole()


def test_a_batch_after_it_is_written_and_one_before_it_is_refused(broker: Broker) -> None:
    topic = broker.create_topic("next", 2)
    run(task(broker.bootstrap_servers, batch_id=7), batch_of(topic, 0, 5))
    assert run(task(broker.bootstrap_servers, batch_id=8), batch_of(topic, 0, 5, first=5)) == [(5, 5)]
    with pytest.raises(StaleBatchError, match="has written batch 8"):
        run(task(broker.bootstrap_servers, batch_id=7), batch_of(topic, 0, 5))
    assert written(broker, topic)[0] == [b"0-%d" % number for number in range(10)]


def test_a_limit_of_rows_makes_several_transactions(broker: Broker) -> None:
    topic = broker.create_topic("bit-by-bit", 2)
    steps: list[str] = []
    run(
        task(broker.bootstrap_servers, rows=15, on_step=steps.append),
        batch_of(topic, 0, 20),
        batch_of(topic, 0, 20, 20),
    )
    assert steps.count(COMMITTED) == 3
    assert written(broker, topic)[0] == whole()[0]


@pytest.mark.parametrize(("step", "times"), [(FENCED, 2), (BEGUN, 2), (SENT, 1), (MARKED, 3), (COMMITTED, 4)])
def test_a_writer_killed_at_a_step_is_gone_on_with_exactly(
    broker: Broker, tmp_path: Path, step: str, times: int
) -> None:
    killed_and_gone_on_with(broker, tmp_path, step, times)


@pytest.mark.soak
@pytest.mark.parametrize("times", range(1, 9))
@pytest.mark.parametrize("step", TASK_STEPS)
def test_a_writer_killed_at_every_step_is_gone_on_with_exactly(
    broker: Broker, tmp_path: Path, step: str, times: int
) -> None:
    killed_and_gone_on_with(broker, tmp_path, step, times)


def killed_and_gone_on_with(broker: Broker, directory: Path, step: str, times: int) -> None:
    topic = broker.create_topic(f"killed-{step}-{times}-{directory.name}", 2)
    arguments = [broker.bootstrap_servers, topic, step, str(times)]
    with Process([sys.executable, "-m", "tests.support.dying_writer", *arguments], directory / "writer.log") as writer:
        writer.wait(LONG_S)
        # A step that is done less often than that lets the writer end by itself.
        assert writer.exit_code in (-9, 0), writer.log_text()
    run(task(broker.bootstrap_servers, rows=15), batch_of(topic, 0), batch_of(topic, 1))
    assert written(broker, topic) == whole()


def test_a_zombie_writes_nothing_and_waits_for_the_attempt_that_took_over(broker: Broker) -> None:
    topic = broker.create_topic("zombie", 2)
    is_held, goes_on = threading.Event(), threading.Event()
    reports: list[tuple[int, int]] = []

    def hold(step: str) -> None:
        if step == SENT and not is_held.is_set():
            is_held.set()
            assert goes_on.wait(LONG_S)

    zombie = threading.Thread(
        target=lambda: reports.extend(run(task(broker.bootstrap_servers, on_step=hold), batch_of(topic, 0)))
    )
    zombie.start()
    try:
        wait_until(is_held.is_set, LONG_S, "the first attempt has not sent its rows")
        assert run(task(broker.bootstrap_servers), batch_of(topic, 0)) == [(ROWS, ROWS)]
    finally:
        goes_on.set()
        zombie.join(LONG_S)
    assert reports == [(ROWS, 0)]
    assert written(broker, topic)[0] == whole()[0]


def test_a_transaction_that_took_too_long_says_what_to_do(broker: Broker) -> None:
    topic = broker.create_topic("too-long", 2)
    slow = task(broker.bootstrap_servers)._replace(transactions=Transactions(timeout_ms=1000))

    def outlast(step: str) -> None:
        if step != SENT:
            return
        began = time.monotonic()
        name = MarkerName(QUERY, topic, 0).transactional_id
        wait_until(lambda: time.monotonic() - began > 1.1, LONG_S, "the clock stands still")
        broker.travel(minutes=1)
        ended = (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
        found = broker.admin.describe_transactions
        wait_until(lambda: found([name])[name].state in ended, LONG_S, "the transaction is still open")

    with pytest.raises(TransactionTooLongError, match="give it a longer time limit"):
        run(slow._replace(on_step=outlast), batch_of(topic, 0))
    assert written(broker, topic)[0] == []


def test_a_zombie_that_comes_late_finds_the_batch_written(broker: Broker) -> None:
    topic = broker.create_topic("late", 2)
    zombie = task(broker.bootstrap_servers)
    run(task(broker.bootstrap_servers), batch_of(topic, 0))
    assert run(zombie, batch_of(topic, 0)) == [(ROWS, 0)]
    assert written(broker, topic)[0] == whole()[0]


def test_a_fenced_producer_says_so(broker: Broker) -> None:
    place = marker_place(broker.admin, {"bootstrap.servers": broker.bootstrap_servers})
    name = MarkerName("fenced", "any", 0)
    with MarkedProducer(place, name) as first, MarkedProducer(place, name) as second:
        first.open(NOTHING_READ)
        first.begin()
        second.open(NOTHING_READ)
        with pytest.raises(FencedWriterError, match="later producer"):
            first.commit(Marker(1))
    assert read_markers(place, NOTHING_READ, 20_000, name.__eq__).furthest(name) is None


def test_markers_wait_for_the_transaction_before_them(broker: Broker) -> None:
    """An open transaction in the markers' partition does not hide what was committed behind it."""
    place = marker_place(broker.admin, {"bootstrap.servers": broker.bootstrap_servers})._replace(partition_count=1)
    names = [MarkerName("neighbours", "any", number) for number in (0, 1)]
    with MarkedProducer(place, names[0]) as first, MarkedProducer(place, names[1], Transactions(20_000)) as second:
        first.open(NOTHING_READ)
        second.open(NOTHING_READ)
        first.begin()
        first.producer.send(place.topic, Marker(1).encode(), names[0].encode(), 0)
        first.producer.flush()
        second.begin()
        second.commit(Marker(2))
        found: list[MarkersRead] = []
        reading = threading.Thread(
            target=lambda: found.append(read_markers(place, NOTHING_READ, 60_000, names.__contains__))
        )
        reading.start()
        first.commit(Marker(3))
        reading.join(LONG_S)
    assert [read.furthest(name) for read in found for name in names] == [Marker(3), Marker(2)]


def test_a_topic_of_markers_that_is_not_compacted_is_refused(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    topic = broker.create_topic("deleted-markers", configs={"cleanup.policy": "delete"})
    with pytest.raises(MarkerTopicError, match=r"cleanup\.policy=delete"):
        marker_place(broker.admin, settings, topic)
