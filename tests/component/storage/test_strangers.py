"""Logs that no registry knows, when a topic of their name is made: left as they are, never mixed up with its own."""

from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.log_manager import LogManager
from tests.support.log_managers import ID, ManagerRig, append, create_log, read_values

KEY = ("visits", 0)
FOLDER = "visits-0"
OLD_ID = bytes(range(2, 18))


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    """A log with records from offset 1 on in the first directory."""
    rig = ManagerRig([tmp_path / "a"])
    log = create_log(rig.start(), *KEY, OLD_ID, is_new=True)
    append(log, b"gone")
    append(log, b"old")
    log.set_high_watermark(2)
    log.delete_records_before(1)
    rig.manager.close()
    rig.paths.append(tmp_path / "b")
    return rig


def forget_id(rig: ManagerRig) -> None:
    (rig.paths[0] / FOLDER / "partition.metadata").unlink()


def started(rig: ManagerRig, *, topic_id: bytes | None = None) -> LogManager:
    """`topic_id`: of the topic in the registry; None: it has no such topic."""
    manager = rig.make()
    manager.lock_directories()
    manager.load(lambda topic, partition: topic_id if (topic, partition) == KEY else None)
    return manager


def fill_first_directory(rig: ManagerRig) -> None:
    """The second has fewer logs then, and is asked first."""
    create_log(rig.manager, "other", 0, ID, is_new=True)


@pytest.mark.parametrize("fill", [False, True])
def test_a_log_without_an_id_keeps_its_name_from_being_used_in_any_directory(rig: ManagerRig, fill: bool) -> None:
    forget_id(rig)
    manager = started(rig)
    if fill:
        fill_first_directory(rig)

    with pytest.raises(BrokerError, match="move it away") as refused:
        create_log(manager, *KEY, ID, is_new=True)

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not (rig.paths[1] / FOLDER).exists()
    (rig.paths[0] / FOLDER).rename(rig.paths[0] / "moved-away")
    log = create_log(manager, *KEY, ID, is_new=True)
    assert read_values(log) == []
    manager.close()


def test_a_log_of_another_topic_does_not_keep_its_name_from_being_used_elsewhere(rig: ManagerRig) -> None:
    log = create_log(started(rig), *KEY, ID, is_new=True)
    assert log.directory.parent == rig.paths[1]
    append(log, b"new")
    rig.manager.close()

    found = started(rig, topic_id=ID).get(*KEY)
    assert found is not None
    assert read_values(found) == [b"new"]
    rig.manager.close()


@pytest.mark.parametrize("has_id", [False, True])
def test_a_refused_creation_leaves_the_offsets_of_what_lies_there(rig: ManagerRig, has_id: bool) -> None:
    if not has_id:
        forget_id(rig)
    del rig.paths[1]
    manager = started(rig)
    with pytest.raises(BrokerError, match="move it away"):
        create_log(manager, *KEY, ID, is_new=True)
    manager.close()

    log = started(rig, topic_id=OLD_ID).get(*KEY)
    assert log is not None
    assert (log.log_start_offset, log.high_watermark) == (1, 2)
    assert read_values(log) == [b"old"]
    rig.manager.close()


def test_a_log_without_an_id_beside_the_topics_own_does_not_stop_the_start(
    rig: ManagerRig, caplog: pytest.LogCaptureFixture
) -> None:
    forget_id(rig)
    first = rig.paths.pop(0)
    append(create_log(rig.start(), *KEY, ID, is_new=True), b"new")
    rig.manager.close()
    rig.paths.insert(0, first)

    log = started(rig, topic_id=ID).get(*KEY)

    assert log is not None
    assert read_values(log) == [b"new"]
    assert (first / FOLDER / f"{0:020}.log").exists()
    assert any("without a topic id" in message and FOLDER in message for message in caplog.messages)
    rig.manager.close()
