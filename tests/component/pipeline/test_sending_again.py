"""What is sent again under a name that was used: the same goes on, something else is refused and not dropped."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow
import pytest

from kavka.client import Admin, NewTopic
from kavka.pipeline.sending.marked_producer import Transactions
from kavka.pipeline.sending.marker_reading import NOTHING_READ
from kavka.pipeline.sending.markers import marker_place
from kavka.pipeline.sending.partition_task import PARTITION, TOPIC, ChangedBatchError, PartitionTask
from kavka.pipeline.sending.replaying import replay
from kavka.pipeline.sending.target_checks import TargetError
from kavka.testing import Broker
from tests.support.dying_writer import FIRST_MS
from tests.support.sample_lake import replay_of, sample_lake

HALF_MS = FIRST_MS + 20_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as started:
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

    def written(values: Sequence[bytes]) -> object:
        count = len(values)
        rows = pyarrow.record_batch(
            {
                TOPIC: pyarrow.array(["out"] * count),
                PARTITION: pyarrow.array([0] * count, pyarrow.int32()),
                "key": pyarrow.nulls(count, pyarrow.binary()),
                "value": pyarrow.array(values, pyarrow.binary()),
            }
        )
        task = PartitionTask(place, "daily", 0, NOTHING_READ, Transactions(20_000))
        (report,) = [each for batch in task([rows]) for each in batch.to_pylist()]
        return report["sent"]

    assert written([b"a", b"b", b"c"]) == 3
    assert written([b"a", b"b", b"c"]) == 0
    for other in ([b"a", b"b", b"c", b"d"], [b"a", b"b"]):
        with pytest.raises(ChangedBatchError, match=f"came again with {len(other)} rows for out-0, where 3 are"):
            written(other)
