"""Disks that fill up, turn read-only or break: a clear error, nothing acknowledged lost, back by itself if possible.

The file systems are real and small; the tests are skipped where they cannot be mounted.
"""

import random
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from kavka.broker.server import Broker
from kavka.config.sources import load_config
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.robustness.test_wrong_settings import start
from tests.support.kavka_process import KavkaProcess
from tests.support.logged_errors import LoggedErrors
from tests.support.metrics_page import metric, wait_for_metric
from tests.support.mounts import break_disk, ext4, remount, tmpfs
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import wait_until
from tests.support.producing import Producing, assert_nothing_lost_or_doubled
from tests.support.wire import Wire, batch_of, create_topic, fetch_request, produce, read_values

MIB = 1024 * 1024
VALUE_BYTES = 50_000
ROOM_TIMEOUT_S = 60.0
NOISE = random.Random(7).randbytes(VALUE_BYTES)


def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 16) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        filler = disk / "filler"
        filler.write_bytes(bytes(6 * MIB))
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "full")
            acknowledged = fill(client, "full")
            refused = produce(client, "full", value_batch(0))
            # What is left is too little for a batch, but may be enough for the registry.
            fill_up(disk / "rest")
            broker.expect_errors("the registry .* undid . calls: .* is full", "the controller cannot go on: .* is full")
            unmade = create_anyway(client, "unmade")

            assert unmade == ErrorCode.KAFKA_STORAGE_ERROR
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert ErrorCode(refused.error_code).retriable
            assert _refusals(broker) == 1
            assert read_values(client, "full") == [value(number) for number in range(acknowledged)]
            assert client.ask(MetadataRequest(topics=None), 5).topics[0].error_code == 0
            broker.process.check_alive()

            filler.unlink()

            wait_until(lambda: produce(client, "full", value_batch(acknowledged)).error_code == 0, ROOM_TIMEOUT_S, "no")
            wait_until(lambda: create_anyway(client, "unmade") == 0, ROOM_TIMEOUT_S, "no topic can be created")
            expected = [value(number) for number in range(acknowledged + 1)]
            assert read_values(client, "full") == expected
        assert "goes offline" not in broker.process.log_text()
        broker.kill()
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert read_values(client, "full") == expected


def test_retention_frees_a_full_disk_and_writes_go_on(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    settings = [
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"log.dirs={disk / 'data'}",
        # Not before the disk is full, however long that takes.
        "log.retention.check.interval.ms=36000000",
        "log.segment.delete.delay.ms=100",
        "log.initial.task.delay.ms=100",
    ]
    configs = {"retention.bytes": str(4 * MIB), "segment.bytes": str(MIB), "file.delete.delay.ms": "100"}
    with tmpfs(disk, 12), LoggedErrors():
        broker = Broker(load_config(None, settings, {}).config)
        broker.start()
        try:
            with Wire("127.0.0.1", int(broker.endpoints_text().rpartition(":")[2])) as client:
                create_topic(client, "rolling", configs=configs)
                acknowledged = fill(client, "rolling")
                assert acknowledged * VALUE_BYTES > 8 * MIB

                broker.services.logs.retention_pass()

                wait_until(lambda: produce(client, "rolling", value_batch(0)).error_code == 0, ROOM_TIMEOUT_S, "no")
                # The little that lets a batch in may be there before the segments' files are gone.
                wait_until(lambda: shutil.disk_usage(disk).free > 4 * MIB, ROOM_TIMEOUT_S, "no room")
        finally:
            broker.stop()


@pytest.mark.slow
def test_idempotent_producers_ride_out_a_full_disk(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 16) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "numbers", PARTITIONS)
        with Producing(tmp_path, broker.bootstrap, "numbers", "c", "confluent", rate=3000) as producer:
            for _ in range(3):
                producer.wait_for_more()
                refused = _refusals(broker)
                fill_up(disk / "filler")
                wait_until(partial(_is_refused_more, broker, refused), ROOM_TIMEOUT_S, "nothing is refused")
                (disk / "filler").unlink()
            producer.wait_for_more()
            sent = producer.finish()

        assert producer.errors() == []
        assert assert_nothing_lost_or_doubled(broker.host, broker.port, "numbers", [producer]) == sent


def test_a_broker_stopped_on_a_full_disk_has_all_it_acknowledged_when_there_is_room_again(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 12) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "full")
            (disk / "filler").write_bytes(bytes(4 * MIB))
            acknowledged = fill(client, "full")
            fill_up(disk / "rest")
        code = broker.process.stop()
        assert "trace=" not in broker.process.log_text()
        assert code in (0, 1)
        (disk / "filler").unlink()
        (disk / "rest").unlink()
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert read_values(client, "full") == [value(number) for number in range(acknowledged)]


def test_a_start_on_a_full_disk_works_or_says_why_not(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 8) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "kept")
            assert produce(client, "kept", value_batch(0)).error_code == 0
        broker.kill()
        fill_up(disk / "filler")
        code, output = start(tmp_path, {"log.dirs": str(disk / "data")})
        assert code == 1
        assert "No space left" in output or "full" in output
        (disk / "filler").unlink()
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert read_values(client, "kept") == [value(0)]


def test_a_read_only_directory_stops_the_start(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 8) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "kept")
            assert produce(client, "kept", value_batch(0)).error_code == 0
        broker.stop()
        remount(disk, "ro")
        code, output = start(tmp_path, {"log.dirs": str(disk / "data")})
        remount(disk, "rw")

        assert code == 1
        assert "Read-only file system" in output
        assert str(disk / "data") in output
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert read_values(client, "kept") == [value(0)]


def test_the_last_directorys_disk_breaks_and_the_broker_stops_with_the_reason(tmp_path: Path) -> None:
    with ext4(tmp_path / "disk", 16) as disk, KavkaProcess(tmp_path, {"log.dirs": str(disk / "data")}) as broker:
        with Wire(broker.host, broker.port, timeout_s=60) as client:
            broker.expect_errors(
                "goes offline", "no log directory is left", "the registry .* (undid|could not roll back)"
            )
            broker.expect_errors(
                'a step of the stop failed" step=BrokerRegistration.unregister .*disk image is malformed'
            )
            broker.expected_exit_code = 1
            create_topic(client, "lost")
            assert produce(client, "lost", value_batch(0)).error_code == 0
            break_disk(disk)
            try:
                assert produce(client, "lost", value_batch(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            except OSError:
                # It stopped before the answer was out.
                assert broker.process.wait(60) == 1

        assert broker.process.wait(ROOM_TIMEOUT_S) == 1
        log = broker.process.log_text()
        assert "no log directory is left" in log
        assert str(disk / "data") in log


def test_one_of_two_disks_breaks_and_the_other_goes_on(tmp_path: Path) -> None:
    with ext4(tmp_path / "disk", 16) as disk:
        settings = {"log.dirs": f"{tmp_path / 'good'},{disk / 'data'}", "metrics.port": "0"}
        with KavkaProcess(tmp_path, settings) as broker, Wire(broker.host, broker.port) as client:
            create_topic(client, "spread", 4)
            there = [(disk / "data" / f"spread-{partition}").exists() for partition in range(4)]
            assert any(there)
            assert not all(there)
            lost_ones = [number for number in range(4) if there[number]]
            broker.expect_errors("goes offline", "cannot host topic=spread", "cannot host . replicas")
            for partition in range(4):
                assert produce(client, "spread", value_batch(0), partition=partition).error_code == 0
            break_disk(disk)

            def codes() -> list[int]:
                return [produce(client, "spread", value_batch(1), partition=number).error_code for number in range(4)]

            expected = [ErrorCode.KAFKA_STORAGE_ERROR if broken else 0 for broken in there]
            assert codes() == expected
            assert codes() == expected
            wait_until(lambda: broker.process.log_text().count("goes offline") == 1, 60, "nothing is said")
            # The controller has the lost ones stopped now; they stay what they are.
            wait_until(lambda: all(leader_of(client, lost) == -1 for lost in lost_ones), 60, "they still have leaders")
            assert codes() == expected
            wait_for_metric(broker, "kafka_server_replicamanager_offlinereplicacount", lambda seen: seen == sum(there))
            assert metric(broker, "kafka_server_replicamanager_partitioncount") == 4
            asked = client.ask(fetch_request("spread", 0, partition=there.index(True)), 12)
            assert asked.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            good = there.index(False)
            assert read_values(client, "spread", partition=good) == [value(0), value(1), value(1), value(1)]
            create_topic(client, "more", 2)
            assert produce(client, "more", value_batch(0)).error_code == 0


def leader_of(client: Wire, partition: int) -> int:
    (topic,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="spread")]), 5).topics
    leaders: dict[int, int] = {each.partition_index: each.leader_id for each in topic.partitions}
    return leaders[partition]


def _refusals(broker: KavkaProcess) -> int:
    return broker.process.log_text().count("refuses writes")


def _is_refused_more(broker: KavkaProcess, before: int) -> bool:
    return _refusals(broker) > before


def fill(client: Wire, topic: str) -> int:
    """Produce until the broker refuses: how many values were acknowledged."""
    acknowledged = 0
    while acknowledged < 1000:
        answer = produce(client, topic, value_batch(acknowledged))
        if answer.error_code != 0:
            return acknowledged
        assert answer.base_offset == acknowledged
        acknowledged += 1
    raise AssertionError("the disk does not fill up")


def fill_up(path: Path) -> None:
    """Take all the room there is."""
    with path.open("wb", buffering=0) as file:
        for size in (MIB, 4096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def value(number: int) -> bytes:
    return b"%06d" % number + NOISE


def value_batch(number: int) -> bytes:
    return batch_of([value(number)], timestamp_ms=time.time_ns() // 1_000_000)


def create_anyway(client: Wire, name: str) -> int:
    """The error code of an attempt to create a topic of one partition."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    code = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5).topics[0].error_code
    return 0 if code == ErrorCode.TOPIC_ALREADY_EXISTS else int(code)
