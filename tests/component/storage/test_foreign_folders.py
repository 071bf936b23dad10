"""Folders that are called as partitions' are, but are none: a broker does not serve, fill, rename or delete them."""

import logging
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.files import Files
from kavka.storage.log_loading import find_folders
from kavka.storage.partition_folders import delete_folder
from tests.support.log_managers import ID, ManagerRig, append, create_log, delete_log, read_values

UNIQUE = "0f6ce1d2" * 4
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return ManagerRig([tmp_path / "a"])


def contents(folder: Path) -> dict[str, str | None]:
    """All files below with what is in them, and all folders."""
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"precious {name}")
    return folder


def test_a_link_that_leads_to_itself_or_nowhere_is_no_log(rig: ManagerRig) -> None:
    append(create_log(rig.start(), "visits", 0, ID, is_new=True), b"kept")
    rig.manager.close()
    for name, target in (("loop-0", "loop-0"), ("long-0", "x" * 300), ("gone-0", "gone")):
        (rig.paths[0] / name).symlink_to(target)

    manager = rig.start()

    assert rig.failures == []
    assert read_values(create_log(manager, "visits", 0, ID)) == [b"kept"]
    manager.close()


@pytest.mark.parametrize("names", [("wedding.jpg", "album/x.jpg"), ("server.log", "2026.index", "a.tmp"), ()])
def test_a_folder_without_a_logs_files_is_left_as_it_is_and_named(
    rig: ManagerRig, caplog: pytest.LogCaptureFixture, names: tuple[str, ...]
) -> None:
    photos = fill(rig.paths[0] / "photos-3", *names)
    before = contents(photos)
    manager = rig.start()
    assert manager.all_logs() == []
    assert manager.delete([("photos", 3)]) == {}
    manager.checkpoint_recovery_points()
    manager.close()
    assert contents(photos) == before
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "left alone" in line
    assert "photos-3" in line


@pytest.mark.parametrize(
    "name",
    [
        SEGMENT,
        "00000000000000000120.timeindex",
        "00000000000000000120.log.deleted",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ],
)
def test_one_file_of_a_logs_makes_a_folder_a_log(tmp_path: Path, name: str) -> None:
    folder = fill(tmp_path / "visits-0", name)
    assert find_folders(tmp_path, Files()).logs == {("visits", 0): folder}


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "visits-0").symlink_to(fill(tmp_path / "elsewhere", SEGMENT))
    (tmp_path / "logs" / "etc-0").symlink_to(fill(tmp_path / "etc", "passwd"))
    (tmp_path / "logs" / "gone-0").symlink_to(tmp_path / "gone")
    found = find_folders(tmp_path / "logs", Files())
    assert list(found.logs) == [("visits", 0)]
    assert found.no_logs == ["etc-0", "gone-0"]


def test_what_else_lies_in_a_logs_folder_stays_when_the_log_goes(rig: ManagerRig) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    manager.close()
    names = ("note.txt", "old.tmp", "my.deleted", f"{SEGMENT}.bak", "notes/a")
    for name in names:
        (rig.paths[0] / "visits-0" / name).parent.mkdir(exist_ok=True)
        (rig.paths[0] / "visits-0" / name).write_text("precious")
    manager = rig.start()
    assert read_values(create_log(manager, "visits", 0, ID)) == [b"one"]
    delete_log(manager, "visits", 0)
    rig.now_ms += 60_000
    assert manager.delete_pending() == 1
    manager.close()
    [left] = rig.paths[0].glob("visits-0*")
    assert contents(left) == {**dict.fromkeys(names, "precious"), "notes": None}


def test_of_a_deleted_link_only_the_link_goes(tmp_path: Path) -> None:
    elsewhere = fill(tmp_path / "elsewhere", SEGMENT)
    link = tmp_path / f"visits-0.{UNIQUE}-delete"
    link.symlink_to(elsewhere)
    delete_folder(link, Files())
    assert not link.is_symlink()
    assert list(contents(elsewhere)) == [SEGMENT]


def test_a_partition_takes_an_empty_folder_of_its_name(rig: ManagerRig) -> None:
    fill(rig.paths[0] / "visits-0")
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    manager.close()
    manager = rig.start()
    assert read_values(create_log(manager, "visits", 0, ID)) == [b"one"]
    manager.close()


def test_a_partition_whose_name_is_taken_is_refused_with_what_to_do(rig: ManagerRig) -> None:
    photos = fill(rig.paths[0] / "photos-3", "wedding.jpg")
    manager = rig.start()
    with pytest.raises(BrokerError, match=f"{photos} is there.*move it away") as error:
        create_log(manager, "photos", 3, ID, is_new=True)
    assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.delete([("photos", 3)]) == {}
    manager.close()
    assert contents(photos) == {"wedding.jpg": "precious wedding.jpg"}


def test_a_log_that_is_not_known_keeps_its_offsets_and_is_recovered_once_it_is(rig: ManagerRig) -> None:
    manager = rig.start()
    for topic in ("visits", "orders"):
        log = create_log(manager, topic, 0, ID)
        append(log, b"one")
        append(log, b"two")
        log.advance_high_watermark(2)
        log.delete_records_before(1)
        log.clean_offset = 1
    manager.checkpoint_clean_offsets(manager.directories.all[0])
    manager.close()

    manager = rig.make()
    manager.lock_directories()
    manager.load(lambda topic, _: ID if topic == "visits" else None)
    assert [log.topic for log in manager.all_logs()] == ["visits"]
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_clean_offsets(manager.directories.all[0])
    manager.close()

    logs = {log.topic: log for log in rig.start().all_logs()}
    for log in logs.values():
        assert (log.log_start_offset, log.high_watermark, log.clean_offset) == (1, 2, 1)
        assert read_values(log) == [b"two"]
    assert {topic: log.recovered_segments for topic, log in logs.items()} == {"visits": 0, "orders": 1}
    rig.manager.close()
