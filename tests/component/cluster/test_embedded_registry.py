"""What keeping the tree in one SQLite file adds to what every registry does (`test_registry.py`)."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kavka.cluster.registry.base import (
    Create,
    EventType,
    RegistryCorruptError,
    RegistryInUseError,
    RegistryUnavailableError,
    RegistryVersionError,
    WatchEvent,
)
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from tests.support.registries import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def registry(path: Path) -> Iterator[EmbeddedRegistry]:
    opened = EmbeddedRegistry(path, Clock())
    yield opened
    opened.close()


def test_zxids_grow_over_restarts_and_ephemerals_end_with_their_session(path: Path) -> None:
    first = EmbeddedRegistry(path, Clock())
    first.create("/kept", b"data")
    first.create("/gone", ephemeral=True)
    last_zxid = first.get("/gone")[1].czxid
    assert first.get("/gone")[1].ephemeral_owner == first.session_id
    first.close()

    second = EmbeddedRegistry(path, Clock())
    second.create("/new")
    assert second.children("/") == ["kept", "new"]
    assert second.get("/kept")[0] == b"data"
    assert second.get("/new")[1].czxid > last_zxid
    assert second.session_id > first.session_id
    second.close()


def test_what_was_answered_survives_a_crash_and_ephemerals_do_not(path: Path, tmp_path: Path) -> None:
    registry = EmbeddedRegistry(path, Clock())
    registry.create("/brokers")
    registry.create("/brokers/1", ephemeral=True)
    crashed = tmp_path / "crashed"
    for count in range(5):
        registry.multi([Create(f"/t{count}"), Create(f"/t{count}/state", b"%d" % count)])
        shutil.rmtree(crashed, ignore_errors=True)
        crashed.mkdir()
        for file in tmp_path.glob(f"{FILE_NAME}*"):
            shutil.copy(file, crashed)
        recovered = EmbeddedRegistry(crashed / FILE_NAME, Clock())
        assert recovered.children("/") == ["brokers", *(f"t{each}" for each in range(count + 1))]
        assert recovered.get(f"/t{count}/state")[0] == b"%d" % count
        assert recovered.children("/brokers") == []
        assert recovered.get("/brokers")[1].cversion == 2
        recovered.close()
    registry.close()


@pytest.mark.parametrize("cut_bytes", [1, 100, 3000, 5000])
def test_a_torn_log_loses_at_most_what_was_not_answered(path: Path, tmp_path: Path, cut_bytes: int) -> None:
    registry = EmbeddedRegistry(path, Clock())
    registry.multi([Create("/a"), Create("/a/b")])
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in tmp_path.glob(f"{FILE_NAME}*"):
        shutil.copy(file, crashed)
    registry.close()
    log = crashed / f"{FILE_NAME}-wal"
    with log.open("r+b") as opened:
        opened.truncate(log.stat().st_size - cut_bytes)
    recovered = EmbeddedRegistry(crashed / FILE_NAME, Clock())
    assert recovered.children("/") in ([], ["a"])
    assert recovered.exists("/a") is None or recovered.children("/a") == ["b"]
    recovered.close()


def test_a_second_broker_is_refused(registry: EmbeddedRegistry, path: Path) -> None:
    registry.create("/a")
    with pytest.raises(RegistryInUseError, match="another broker"):
        EmbeddedRegistry(path, Clock())
    assert registry.children("/") == ["a"]


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    EmbeddedRegistry(path, Clock()).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(RegistryVersionError, match="schema version 2"):
        EmbeddedRegistry(path, Clock())


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_registry_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(RegistryCorruptError, match=FILE_NAME):
        EmbeddedRegistry(path, Clock())
    assert path.read_bytes() == content


def test_somebody_elses_database_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE theirs (x)")
    content = path.read_bytes()
    with pytest.raises(RegistryCorruptError, match="not a Kavka registry"):
        EmbeddedRegistry(path, Clock())
    assert path.read_bytes() == content


def test_damaged_pages_give_a_clear_error(path: Path) -> None:
    registry = EmbeddedRegistry(path, Clock())
    registry.pipeline([Create(f"/n{each}", bytes(500)) for each in range(200)])
    registry.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(RegistryCorruptError, match="damaged"):
        EmbeddedRegistry(path, Clock()).children("/")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailableError, match="absent"):
        EmbeddedRegistry(tmp_path / "absent" / FILE_NAME, Clock())


def test_a_full_disk_undoes_the_write_and_lets_go_when_there_is_room(registry: EmbeddedRegistry) -> None:
    """`max_page_count` makes SQLite answer as a full disk does."""
    seen: list[WatchEvent] = []
    registry.create("/kept")
    registry.exists("/big", seen.append)
    limit_pages(registry, 1)
    with pytest.raises(RegistryUnavailableError, match="full"):
        registry.pipeline([Create("/big", bytes(100_000)), Create("/next")])
    assert registry.children("/") == ["kept"]
    assert seen == []
    limit_pages(registry, 1 << 20)
    registry.create("/big", bytes(100_000))
    assert registry.children("/") == ["big", "kept"]
    assert seen == [WatchEvent(EventType.CREATED, "/big")]


def limit_pages(registry: EmbeddedRegistry, pages: int) -> None:
    registry._submit(lambda tree, effects: tree._db.execute(f"PRAGMA max_page_count = {pages}"))
