"""Loading, creating, deleting and closing logs in several directories."""

import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.log_directory import DirectoryInUseError
from kavka.storage.log_loading import DuplicatePartitionError
from kavka.storage.partition_log import PartitionLog
from tests.support.kafka_directory import KAFKA_STOPPED_MS, extract_kafka_directory
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, delete_log, read_values


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"])


def test_logs_are_there_again_after_a_clean_stop(rig: ManagerRig) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one", b"two")
    append(create_log(manager, "visits", 1, ID), b"three")
    manager.close()

    manager = rig.start()
    assert {(log.topic, log.partition) for log in manager.all_logs()} == {("visits", 0), ("visits", 1)}
    log = create_log(manager, "visits", 0, ID)
    assert read_values(log) == [b"one", b"two"]
    assert log.topic_id == ID
    assert log.recovered_segments == 0
    manager.close()


def test_logs_are_recovered_after_a_kill(rig: ManagerRig) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one", b"two")
    rig.kill()

    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    assert log.recovered_segments == 1
    assert read_values(log) == [b"one", b"two"]
    manager.close()


def test_high_watermark_and_log_start_survive_a_kill(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    for value in (b"one", b"two", b"three"):
        append(log, value)
    log.advance_high_watermark(2)
    log.delete_records_before(1)
    log.flush()
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks()
    rig.kill()

    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 2, 3)
    manager.close()


def test_the_log_start_survives_a_kill_by_its_own_checkpoint(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    for value in (b"one", b"two", b"three"):
        append(log, value)
    log.advance_high_watermark(2)
    log.delete_records_before(1)
    log.flush()
    manager.checkpoint_log_start_offsets()
    rig.kill()

    manager = rig.start()
    assert create_log(manager, "visits", 0, ID).log_start_offset == 1
    manager.close()


def test_a_start_that_did_not_load_leaves_no_mark_of_a_clean_stop(rig: ManagerRig) -> None:
    manager = rig.start()
    create_log(manager, "visits", 0, ID)
    rig.kill()
    manager = rig.make()
    manager.lock_directories()
    manager.close()
    assert not [path for path in rig.paths if (path / ".kafka_cleanshutdown").exists()]


def test_new_partitions_go_where_the_fewest_are(rig: ManagerRig) -> None:
    manager = rig.start()
    manager.create([("visits", partition, ID) for partition in range(7)])
    assert sorted(len(manager.logs_in(directory)) for directory in manager.directories) == [3, 4]
    manager.close()


def test_creating_again_returns_the_same_log(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    assert create_log(manager, "visits", 0, ID) is log
    with pytest.raises(BrokerError) as error:
        create_log(manager, "visits", 0, bytes(range(16)))
    assert error.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    manager.close()


def test_a_deleted_log_is_gone_at_once_and_its_files_after_the_delay(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append(log, b"one")
    folder = log.directory
    delete_log(manager, "visits", 0)
    assert manager.get("visits", 0) is None
    assert not folder.exists()
    assert len(list(folder.parent.glob("visits-0.*-delete"))) == 1
    assert manager.delete_pending() == 0
    rig.now_ms += 60_000
    assert manager.delete_pending() == 1
    assert list(folder.parent.glob("visits*")) == []
    manager.close()


def test_deleting_what_is_not_there_is_no_error(rig: ManagerRig) -> None:
    manager = rig.start()
    assert manager.delete([("nothing", 0)]) == {}
    manager.close()


def test_a_deletion_that_a_stop_interrupted_is_finished_by_the_next_start(rig: ManagerRig) -> None:
    manager = rig.start()
    folder = create_log(manager, "visits", 0, ID).directory
    delete_log(manager, "visits", 0)
    manager.close()

    manager = rig.start()
    assert manager.all_logs() == []
    assert manager.delete_pending() == 1
    assert list(folder.parent.glob("visits*")) == []
    manager.close()


def test_a_log_made_again_does_not_inherit_offsets_after_a_kill(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    for _ in range(5):
        append(log, b"old")
    log.advance_high_watermark(5)
    log.delete_records_before(4)
    log.flush()
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks()
    delete_log(manager, "visits", 0)
    append(create_log(manager, "visits", 0, bytes(range(16)), is_new=True), b"new")
    rig.kill()

    manager = rig.start()
    log = create_log(manager, "visits", 0, bytes(range(16)))
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)
    assert read_values(log) == [b"new"]
    manager.close()


def test_what_is_no_log_is_left_alone(rig: ManagerRig) -> None:
    names = [
        "lost+found",
        f"visits-3.{'0f6ce1d2' * 4}-future",
        f"visits-4.{'0f6ce1d2' * 4}-stray",
        "remote-log-index-cache",
    ]
    for name in names:
        (rig.paths[0] / name).mkdir(parents=True)
    (rig.paths[0] / "visits-5").write_text("a file")
    manager = rig.start()
    assert manager.all_logs() == []
    manager.delete_pending()
    manager.close()
    assert all((rig.paths[0] / name).is_dir() for name in names)
    assert (rig.paths[0] / "visits-5").read_text() == "a file"


def test_a_partition_in_two_directories_stops_the_start(rig: ManagerRig) -> None:
    for path in rig.paths:
        (path / "visits-0").mkdir(parents=True)
        (path / "visits-0" / "00000000000000000000.log").write_bytes(b"records")
    manager = rig.make()
    manager.lock_directories()
    with pytest.raises(DuplicatePartitionError, match="visits-0"):
        manager.load()
    manager.close()


def test_a_second_broker_on_one_of_the_directories_is_refused_and_holds_nothing(rig: ManagerRig) -> None:
    manager = rig.start()
    other = ManagerRig([rig.paths[0].parent / "c", rig.paths[1]])
    with pytest.raises(DirectoryInUseError):
        other.make().lock_directories()
    manager.close()
    other.start()
    other.manager.close()


def test_logs_without_recovery_points_are_recovered_by_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ManagerRig([tmp_path / "a"], "num.recovery.threads.per.data.dir=2")
    manager = rig.start()
    for partition in range(2):
        append(create_log(manager, "visits", partition, ID, is_new=True), b"kept")
    manager.close()
    (tmp_path / "a" / "recovery-point-offset-checkpoint").write_text("garbage")
    both = threading.Barrier(2, timeout=60)
    load = PartitionLog.open

    def open_beside_the_other(*arguments: Any, **settings: Any) -> PartitionLog:
        both.wait()
        return load(*arguments, **settings)

    monkeypatch.setattr(PartitionLog, "open", open_beside_the_other)

    manager = rig.start()

    assert [(log.recovered_segments, read_values(log)) for log in manager.all_logs()] == [(1, [b"kept"])] * 2
    manager.close()


def test_corrupt_checkpoints_cost_nothing_but_a_scan(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append(log, b"one")
    directory = log.directory.parent
    manager.close()
    for name in ("recovery-point", "replication", "log-start"):
        (directory / f"{name}-offset-checkpoint").write_bytes(b"\0" * 40)
    manager = rig.start()
    assert read_values(create_log(manager, "visits", 0, ID)) == [b"one"]
    manager.close()


def test_topic_configuration_reaches_every_partition_and_those_to_come(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {"retention.ms": "1000"}
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID), ("other", 0, ID)])
    assert create_log(manager, "visits", 0, ID).config.retention_ms == 1000
    manager.update_topic_config("visits", {"retention.ms": "2000"})
    manager.create([("visits", 2, ID)])
    assert {log.config.retention_ms for log in manager.all_logs() if log.topic == "visits"} == {2000}
    assert create_log(manager, "other", 0, ID).config.retention_ms != 2000
    manager.close()


def test_a_log_to_come_has_no_configuration_of_a_namesake_that_nobody_has_deleted(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {"retention.ms": "1000"}
    manager = rig.start()
    create_log(manager, "visits", 0, ID)
    rig.overrides["visits"] = {"retention.ms": "-1"}
    manager.forget_topic_config("visits")
    assert create_log(manager, "visits", 1, ID).config.retention_ms == -1
    manager.close()


def test_a_topic_made_again_has_its_own_configuration(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {"retention.ms": "1000"}
    manager = rig.start()
    create_log(manager, "visits", 0, ID)
    delete_log(manager, "visits", 0)
    rig.overrides["visits"] = {"retention.ms": "5000"}
    assert create_log(manager, "visits", 0, ID).config.retention_ms == 5000
    manager.close()


def test_broker_defaults_reach_topics_that_do_not_override_them(rig: ManagerRig) -> None:
    rig.overrides["own"] = {"retention.ms": "1000"}
    manager = rig.start()
    manager.create([("own", 0, ID), ("default", 0, ID)])
    manager.update_broker_config(rig.broker_config("log.retention.ms=7000"))
    assert create_log(manager, "own", 0, ID).config.retention_ms == 1000
    assert create_log(manager, "default", 0, ID).config.retention_ms == 7000
    manager.close()


def test_producers_of_an_adopted_directory_are_known(tmp_path: Path) -> None:
    rig = ManagerRig([extract_kafka_directory(tmp_path / "kafka-logs"), tmp_path / "new"])
    rig.now_ms = KAFKA_STOPPED_MS
    manager = rig.start()
    assert manager.highest_producer_id() == 1
    log = manager.get("visits", 1)
    assert log is not None
    assert (log.log_end_offset, log.high_watermark, log.recovered_segments) == (11, 11, 0)
    assert read_values(log)[:2] == [b"site 1", b"site 4"]
    manager.close()


def test_a_broker_without_producers_knows_none(rig: ManagerRig) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    assert manager.highest_producer_id() == -1
    manager.close()


def test_claiming_writes_every_directory_once_and_keeps_other_keys(rig: ManagerRig) -> None:
    rig.paths[0].mkdir()
    (rig.paths[0] / "meta.properties").write_text("version=0\ndirectory.id=5eRLUcLVTSyKCRlYNXw-qg\n")
    files = FailingFiles()
    rig.files = files
    manager = rig.start()
    manager.claim(3, "cluster")
    for path in rig.paths:
        assert "broker.id=3\ncluster.id=cluster\n" in (path / "meta.properties").read_text()
    assert "directory.id=5eRLUcLVTSyKCRlYNXw-qg" in (rig.paths[0] / "meta.properties").read_text()
    manager.close()

    manager = rig.make()
    assert manager.lock_directories()[:2] == (3, "cluster")
    files.fail("write_atomically", "meta.properties", errno.EIO)
    manager.claim(3, "cluster")
    assert all(directory.online for directory in manager.directories)
    manager.close()


def test_what_is_left_alone_is_named_but_for_a_brokers_own_files(
    rig: ManagerRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.start().close()
    for name in ("kavka-registry.sqlite", "kavka-registry.sqlite-wal", "notes.txt"):
        (rig.paths[0] / name).touch()

    with caplog.at_level("INFO"):
        rig.start().close()

    (said,) = [message for message in caplog.messages if "left alone" in message]
    assert "names=['notes.txt']" in said
