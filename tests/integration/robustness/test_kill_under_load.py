"""kill -9, again and again, while idempotent producers of two kinds keep producing."""

import random
from pathlib import Path

import pytest

from tests.support.java import run_java
from tests.support.kavka_process import KavkaProcess
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import let_pass
from tests.support.producing import Producing, assert_nothing_lost_or_doubled
from tests.support.wire import Wire, create_topic

DUMP = "kafka.tools.DumpLogSegments"
COMPLAINTS = ("mismatch", "non-consecutive", "corrupt", "invalid", "exception", "recovery failed", "differ")


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_kills_lose_and_double_nothing(tmp_path: Path, kills: int) -> None:
    dice = random.Random(kills)
    # Small segments, so that kills also fall into rolls; checkpoints often, so that recovery starts from them.
    settings = {"log.flush.offset.checkpoint.interval.ms": "500", "log.segment.bytes": "32768"}
    with KavkaProcess(tmp_path, settings) as broker:
        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "numbers", PARTITIONS)
        with (
            Producing(tmp_path, broker.bootstrap, "numbers", "c", "confluent", rate=3000) as confluent,
            Producing(tmp_path, broker.bootstrap, "numbers", "k", "kafka-python", rate=500) as kafka_python,
        ):
            producers = [confluent, kafka_python]
            for _ in range(kills):
                for producer in producers:
                    producer.wait_for_more()
                let_pass(dice.uniform(0.0, 0.4))
                broker.process.check_alive()
                broker.kill()
                broker.start()
            sent = sum(producer.finish() for producer in producers)

        total = assert_nothing_lost_or_doubled(broker.host, broker.port, "numbers", producers)
        assert [producer.errors() for producer in producers] == [[], []]
        # Nobody gave up, so all that was sent is there.
        assert total == sent
        broker.stop()
    _assert_kafka_finds_the_files_sound(broker.log_dir)


def _assert_kafka_finds_the_files_sound(log_dir: Path) -> None:
    folders = [log_dir / f"numbers-{partition}" for partition in range(PARTITIONS)]
    logs = [str(path) for folder in folders for path in sorted(folder.glob("*.log"))]
    indexes = [str(path) for folder in folders for path in sorted(folder.glob("*.*index")) if path.stat().st_size]
    assert len(logs) > PARTITIONS
    assert any(path.endswith(".index") for path in indexes)

    dumped = run_java(DUMP, ["--deep-iteration", "--print-data-log", "--files", ",".join(logs)], bundle="kafka-3.9")
    checked = run_java(DUMP, ["--index-sanity-check", "--files", ",".join(indexes)], bundle="kafka-3.9")
    verified = run_java(DUMP, ["--verify-index-only", "--files", ",".join(indexes)], bundle="kafka-3.9")

    assert dumped.count("isvalid: true") == dumped.count("isvalid:") > 0
    text = "\n".join(line for line in (dumped + checked + verified).lower().splitlines() if "payload" not in line)
    assert [complaint for complaint in COMPLAINTS if complaint in text] == []
    sane = checked.count("passed sanity check")
    assert sane == len(indexes), checked[-3000:]
