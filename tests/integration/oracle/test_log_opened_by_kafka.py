"""Apache Kafka 3.9 opens a log that we left, after a clean stop and after a crash, and we open what it leaves."""

from pathlib import Path

import pytest

from tests.support.kafka_process import ZooKeeperKafka
from tests.support.maven import classpath
from tests.support.partition_logs import append, open_log, read_all

pytestmark = pytest.mark.java

# Of today, so that Kafka's retention leaves them alone.
NO_RETENTION = {"log.retention.ms": "-1"}


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crash"])
def test_a_log_goes_to_kafka_and_back(tmp_path: Path, clean: bool) -> None:
    classpath("kafka-3.9")
    kafka = ZooKeeperKafka(tmp_path, NO_RETENTION)
    folder = kafka.log_dir / "visits-0"
    log = open_log(folder, segment_bytes=20_000, index_interval_bytes=200, topic_id=bytes(range(16)))
    for number in range(300):
        append(log, b"%d" % number, b"second", producer_id=9, producer_epoch=0, base_sequence=2 * number)
    log.begin_leader_epoch(3)
    before = read_all(log)
    log.close(clean=clean)
    if clean:
        (kafka.log_dir / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')

    try:
        kafka.start()
    finally:
        kafka.stop()

    said = [line for line in (tmp_path / "kafka.log").read_text().splitlines() if "visits-0" in line]
    assert not [line for line in said if " INFO " not in line]
    assert any("logStartOffset=0, logEndOffset=600) with 2 segments" in line for line in said)
    assert any("Recovering" in line for line in said) is not clean
    back = open_log(folder, clean=True)
    assert read_all(back) == before
    assert back.recovered_segments == 0
    repeated = append(back, b"299", b"second", producer_id=9, producer_epoch=0, base_sequence=598)
    assert (repeated.duplicate, repeated.first_offset) == (True, 598)
