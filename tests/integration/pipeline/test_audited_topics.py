"""An audit asks a broker: aborted records and markers are no loss, what the lake has not is."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from kavka.cli.main import main
from kavka.client.producer.producer import Producer
from kavka.pipeline.jobs.audit.logs import BrokerSide
from kavka.pipeline.jobs.audit.run import audit
from kavka.testing import Broker
from tests.support.json_documents import document
from tests.support.lakes import FIRST_DAY_US, TOPIC, append, new_manifest, rows
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as serving:
        serving.create_topic(TOPIC, partitions=1)
        with Producer({"bootstrap.servers": serving.bootstrap_servers, "transactional.id": "t"}) as producer:
            producer.init_transactions()
            # Offsets 0-4 and a marker, 6-8 aborted and a marker, 10-14 and a marker.
            for start, count, commits in ((0, 5, True), (6, 3, False), (10, 5, True)):
                producer.begin_transaction()
                for number in range(count):
                    time_ms = FIRST_DAY_US // 1000 + 1000 * (start + number)
                    producer.send(TOPIC, value=b"%d" % number, partition=0, timestamp_ms=time_ms)
                producer.flush()
                producer.commit_transaction() if commits else producer.abort_transaction()
        yield serving


def side_of(broker: Broker) -> BrokerSide:
    """Markers are written after a transaction's end was acknowledged."""
    side = BrokerSide({"bootstrap.servers": broker.bootstrap_servers})
    wait_until(lambda: side.bounds(TOPIC, 0) == range(16), 120, "the last marker is not there")
    return side


def lake_with(folder: Path, *parts: range) -> Path:
    manifest = new_manifest(folder)
    for part in parts:
        path = folder / append(manifest, part.start, part.stop).add[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(rows(part), path)
    return folder


def test_committed_records_are_what_a_lake_has_to_have(broker: Broker, tmp_path: Path) -> None:
    lake = lake_with(tmp_path, range(5), range(10, 13))
    side = side_of(broker)
    try:
        (found,) = audit(lake, side).partitions
        assert (found.log, found.log_rows, found.lake_rows, found.problems) == (range(16), 8, 8, [])
        assert found.lag == 3

        second = lake_with(tmp_path / "second", range(2, 8))
        (file,) = second.glob("data/*/*.parquet")
        pyarrow.parquet.write_table(rows([2, 3, 3, 6, 7]), file)
        (found,) = audit(second, side).partitions
        assert found.missing.ranges == [(4, 4)]
        assert found.duplicates.ranges == [(3, 3)]
        assert found.extra.ranges == [(6, 7)]
    finally:
        side.close()


def test_the_command_audits_a_jobs_lake(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    side_of(broker).close()
    lake_with(tmp_path / "lake", range(4), range(10, 15))
    job = tmp_path / "visits.toml"
    job.write_text(
        f"""[job]
name = "visits"
checkpoint = "state"
[source]
bootstrap.servers = "{broker.bootstrap_servers}"
subscribe = "{TOPIC}"
[[sinks]]
kind = "archive"
path = "lake"
"""
    )
    assert main(["pipeline", "audit", str(job), "--output", "json"]) == 1
    (found,) = document("pipeline-audit", capsys.readouterr().out)
    (partition,) = found["partitions"]
    assert (found["clean"], partition["missing"]) == (False, {"count": 1, "ranges": [[4, 4]]})
    assert main(["pipeline", "audit", str(job)]) == 1
    assert "visits-0 missing: 1 (4)" in capsys.readouterr().out


def test_a_partition_that_is_not_there_has_no_bounds(broker: Broker) -> None:
    side = side_of(broker)
    try:
        assert side.bounds("nowhere", 0) is None
        assert side.bounds(TOPIC, 7) is None
        assert not side.is_compacted(TOPIC)
    finally:
        side.close()
