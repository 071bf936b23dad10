"""What is sent again under a name that was used: the same goes on, something else is refused and not dropped."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow
import pytest

from kavka.client import Admin, NewTopic, Producer
from kavka.pipeline.sending.marked_producer import Transactions
from kavka.pipeline.sending.marker_reading import NOTHING_READ, read_markers
from kavka.pipeline.sending.markers import Marker, MarkerName, marker_place
from kavka.pipeline.sending.partition_task import PARTITION, TOPIC, ChangedBatchError, PartitionTask
from kavka.pipeline.sending.replaying import replay
from kavka.pipeline.sending.steps import COMMITTED, OnStep, unwatched
from kavka.pipeline.sending.target_checks import TargetError
from kavka.testing import Broker
from tests.support.dying_writer import FIRST_MS, batch_of, task
from tests.support.sample_lake import replay_of, sample_lake

HALF_MS = FIRST_MS + 20_000
OTHER = MarkerName("other", "t", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    quick = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with Broker({"log.retention.ms": "-1", **quick}) as started:
        yield started


def make(broker: Broker, topic: str) -> None:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])


def test_a_replay_of_another_time_under_a_used_name_is_refused(broker: Broker, tmp_path: Path) -> None:
    sample_lake(tmp_path, [range(20), range(20, 40)])
    make(broker, "again")
    second_half = replay_of(broker.bootstrap_servers, tmp_path, "again")._replace(from_ms=HALF_MS)
    assert replay(second_half).rows == 40
    assert replay(second_half).rows == 0
    for other in (second_half._replace(from_ms=None, to_ms=HALF_MS), second_half._replace(from_ms=None)):
        with pytest.raises(TargetError, match=f"began with from_ms={HALF_MS} .now None.*another name"):
            replay(other)
    assert replay(second_half._replace(from_ms=None, to_ms=HALF_MS, name="first half")).rows == 40


def test_a_replay_since_some_days_goes_on_with_the_days_that_it_began_with(broker: Broker, tmp_path: Path) -> None:
    sample_lake(tmp_path, [range(20), range(20, 40)])
    make(broker, "days")

    class KilledError(Exception):
        pass

    def killed(step: str) -> None:
        if step == COMMITTED:
            raise KilledError

    said = replay_of(broker.bootstrap_servers, tmp_path, "days", "days")
    said = said._replace(from_ms=HALF_MS, from_said="7d", to_ms=HALF_MS + 15_000, to_said="1h")
    with pytest.raises(KilledError):
        replay(said._replace(on_step=killed))
    later = said._replace(from_ms=HALF_MS + 12_000, to_ms=HALF_MS + 17_000)
    first = broker.records("days", committed=True)
    assert replay(later).rows == 30 - len(first) > 0
    assert len(broker.records("days", committed=True)) == 30
    with pytest.raises(TargetError, match="began with from_ms="):
        replay(later._replace(from_said="8d"))


def test_a_replay_to_a_target_that_was_made_anew_is_refused(broker: Broker, tmp_path: Path) -> None:
    sample_lake(tmp_path, [range(10)])
    make(broker, "anew")
    wanted = replay_of(broker.bootstrap_servers, tmp_path, "anew", "to anew")
    assert replay(wanted).rows == 20
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_topics(["anew"])
    make(broker, "anew")
    with pytest.raises(TargetError, match="began with target_id="):
        replay(wanted)


def test_a_batch_that_comes_again_with_other_rows_is_told(broker: Broker) -> None:
    make(broker, "out")
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with Admin(settings) as admin:
        place = marker_place(admin, settings)

    def written(values: Sequence[bytes], batch_id: int = 0, limit: int = 0, on_step: OnStep = unwatched) -> object:
        count = len(values)
        rows = pyarrow.record_batch(
            {
                TOPIC: pyarrow.array(["out"] * count),
                PARTITION: pyarrow.array([0] * count, pyarrow.int32()),
                "key": pyarrow.nulls(count, pyarrow.binary()),
                "value": pyarrow.array(values, pyarrow.binary()),
            }
        )
        writing = PartitionTask(place, "daily", batch_id, NOTHING_READ, Transactions(20_000, limit), on_step)
        (report,) = [each for batch in writing([rows]) for each in batch.to_pylist()]
        return report["sent"]

    assert written([b"a", b"b", b"c"]) == 3
    assert written([b"a", b"b", b"c"]) == 0
    for other in ([b"a", b"b", b"c", b"d"], [b"a", b"b"]):
        with pytest.raises(ChangedBatchError, match=f"came again with {len(other)} rows for out-0, where 3 are"):
            written(other)
    assert written([b"c", b"a", b"b"]) == 0
    with pytest.raises(ChangedBatchError, match="came again with other rows for out-0, where 3 are"):
        written([b"a", b"b", b"d"])

    def killed(step: str) -> None:
        if step == COMMITTED:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        written([b"e", b"f", b"g", b"h"], 1, 2, killed)
    with pytest.raises(ChangedBatchError, match="came again with other rows for out-0, where 2 are"):
        written([b"e", b"x", b"g", b"h"], 1, 2)
    assert written([b"e", b"f", b"g", b"h"], 1, 2) == 2


def test_markers_are_found_when_their_topic_has_more_partitions_by_now(broker: Broker, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    rows = batch_of("grown", 0)
    make(broker, "grown")
    sample_lake(tmp_path, [range(10)])

    def written(query: str) -> int:
        with Admin(settings) as admin:
            place = marker_place(admin, settings, "growing")
        writing = PartitionTask(place, query, 0, NOTHING_READ, Transactions(20_000))
        return sum(each["sent"] for batch in writing([rows]) for each in batch.to_pylist())

    with Admin(settings) as admin:
        admin.create_topics([NewTopic("growing", 1, 1, {"cleanup.policy": "compact"})])
        assert [written(query) for query in "abcd"] == [rows.num_rows] * 4
        sending = replay_of(broker.bootstrap_servers, tmp_path, "grown")._replace(marker_topic="growing")
        assert replay(sending).rows == 20
        admin.create_partitions({"growing": 7})
    assert [written(query) for query in "abcd"] == [0] * 4
    assert replay(sending).rows == 0


@pytest.fixture
def others_transaction(broker: Broker) -> Iterator[Producer]:
    """Open in each partition of the markers, with a marker of its own."""
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with Admin(settings) as admin:
        place = marker_place(admin, settings)
    own = {"transactional.id": "other", "transaction.timeout.ms": "4000"}
    with Producer({**settings, **own}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for partition in range(place.partition_count):
            producer.send(place.topic, Marker(5).encode(), OTHER.encode(), partition)
        producer.flush()
        yield producer


def test_a_transaction_of_another_query_is_not_waited_for(broker: Broker, others_transaction: Producer) -> None:
    make(broker, "beside")
    writing = task(broker.bootstrap_servers, batch_id=3)
    (report,) = [each for batch in writing([batch_of("beside", 0)]) for each in batch.to_pylist()]
    assert report["sent"] == report["rows"]
    # Now its own marker lies behind: that is waited for, and longer than it would, as the other one ends some time.
    name = MarkerName(writing.query, "beside", 0)
    read = read_markers(writing.place, NOTHING_READ, 1, name.__eq__)
    found = read.furthest(name)
    assert found is not None
    assert (found.batch_id, found.is_whole) == (3, True)
    assert read.furthest(OTHER) is None
