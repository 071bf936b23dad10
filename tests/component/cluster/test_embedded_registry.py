"""What ZooKeeper promises of its tree, kept by one SQLite file."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    InvalidNodeError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    RegistryCorruptError,
    RegistryInUseError,
    RegistryUnavailableError,
    RegistryVersionError,
    SetData,
    WatchEvent,
    create_path,
    delete_trees,
)
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry


class Clock:
    def __init__(self) -> None:
        self.time_ms = 1_000

    def __call__(self) -> int:
        self.time_ms += 1
        return self.time_ms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def registry(path: Path) -> Iterator[EmbeddedRegistry]:
    opened = EmbeddedRegistry(path, Clock())
    yield opened
    opened.close()


def test_a_node_has_the_stat_that_zookeeper_gives(registry: EmbeddedRegistry) -> None:
    registry.create("/a", b"one")
    created = registry.get("/a")[1]
    registry.create("/a/b")
    registry.set("/a", b"three")
    data, stat = registry.get("/a")
    assert data == b"three"
    assert (created.version, created.czxid, created.mzxid, created.num_children) == (0, created.mzxid, created.czxid, 0)
    assert (stat.version, stat.cversion, stat.num_children, stat.data_size_bytes) == (1, 1, 1, 5)
    assert stat.czxid == created.czxid < stat.pzxid < stat.mzxid
    assert stat.ctime_ms == created.ctime_ms < stat.mtime_ms
    registry.delete("/a/b")
    assert registry.get("/a")[1].cversion == 2


def test_each_misuse_has_its_error_and_changes_nothing(registry: EmbeddedRegistry) -> None:
    registry.create("/a")
    registry.create("/a/b")
    registry.create("/e", ephemeral=True)
    for error, call in (
        (NodeExistsError, lambda: registry.create("/a")),
        (NodeExistsError, lambda: registry.create("/")),
        (NoNodeError, lambda: registry.create("/x/y")),
        (NoNodeError, lambda: registry.get("/x")),
        (NoNodeError, lambda: registry.children("/x")),
        (NoNodeError, lambda: registry.set("/x", b"")),
        (NoNodeError, lambda: registry.delete("/x")),
        (BadVersionError, lambda: registry.set("/a", b"", 1)),
        (BadVersionError, lambda: registry.delete("/a/b", 1)),
        (NotEmptyError, lambda: registry.delete("/a")),
        (NotEmptyError, lambda: registry.delete("/")),
        (NoChildrenForEphemeralsError, lambda: registry.create("/e/x")),
        (InvalidNodeError, lambda: registry.create("a")),
        (InvalidNodeError, lambda: registry.create("/a/")),
        (InvalidNodeError, lambda: registry.create("/a/../b")),
        (InvalidNodeError, lambda: registry.create("/a\0")),
        (InvalidNodeError, lambda: registry.create("/\ud800")),
        (InvalidNodeError, lambda: registry.set("/a", bytes((8 << 20) + 1))),
    ):
        with pytest.raises(error):
            call()
    assert registry.children("/") == ["a", "e"]
    assert registry.get("/a")[1].version == 0


def test_sequential_names_count_every_child_there_ever_was(registry: EmbeddedRegistry) -> None:
    registry.create("/q")
    assert registry.create("/q/n_", sequential=True) == "/q/n_0000000000"
    registry.create("/q/other")
    registry.delete("/q/n_0000000000")
    assert registry.create("/q/n_", sequential=True) == "/q/n_0000000002"


def test_multi_applies_all_or_none(registry: EmbeddedRegistry) -> None:
    registry.create("/v", b"0")
    operations: list[Operation] = [Create("/a"), Create("/a/b", b"x"), SetData("/v", b"1", 0), Check("/a/b", 0)]
    results = registry.multi(operations)
    assert results[:2] == ["/a", "/a/b"]
    assert registry.get("/a")[1].czxid == registry.get("/v")[1].mzxid
    with pytest.raises(BadVersionError) as raised:
        registry.multi([Delete("/a/b"), Create("/c"), Check("/v", 0)])
    assert raised.value.path == "/v"
    assert registry.children("/") == ["a", "v"]
    assert registry.children("/a") == ["b"]


def test_a_pipeline_goes_on_after_an_error(registry: EmbeddedRegistry) -> None:
    results = registry.pipeline([Create("/a"), Create("/a"), Create("/b")])
    assert (results[0], results[2]) == ("/a", "/b")
    assert isinstance(results[1], NodeExistsError)


def test_a_pipeline_stops_when_its_guard_fails(registry: EmbeddedRegistry) -> None:
    registry.create("/epoch", b"1")
    guard = Check("/epoch", 0)
    assert registry.pipeline([Create("/a")], guard) == ["/a"]
    with pytest.raises(BadVersionError) as raised:
        registry.pipeline([Create("/b"), SetData("/epoch", b"2"), Create("/c")], guard)
    assert raised.value.path == "/epoch"
    assert registry.children("/") == ["a", "b", "epoch"]


def test_a_watch_fires_once_in_order_and_before_the_write_is_answered(registry: EmbeddedRegistry) -> None:
    seen: list[WatchEvent] = []
    registry.create("/a")
    registry.exists("/new", seen.append)
    registry.get("/a", seen.append)
    registry.children("/a", seen.append)
    registry.children("/", seen.append)

    registry.multi([Create("/a/b"), SetData("/a", b"1"), Create("/new"), SetData("/a", b"2"), Delete("/new")])

    assert seen == [
        WatchEvent(EventType.CHILDREN_CHANGED, "/a"),
        WatchEvent(EventType.DATA_CHANGED, "/a"),
        WatchEvent(EventType.CREATED, "/new"),
        WatchEvent(EventType.CHILDREN_CHANGED, "/"),
    ]


def test_many_nodes_read_at_once_are_watched_as_one_read_by_itself_is(registry: EmbeddedRegistry) -> None:
    for path in ("/a", "/b", "/c"):
        registry.create(path)
    seen: list[WatchEvent] = []
    found = registry.get_many(["/a", "/absent", "/b"], seen.append)
    assert [node is not None for node in found] == [True, False, True]
    registry.create("/absent")
    registry.set("/c", b"not watched")
    assert seen == []
    registry.set("/b", b"x")
    registry.set("/b", b"y")
    registry.delete("/a")
    assert seen == [WatchEvent(EventType.DATA_CHANGED, "/b"), WatchEvent(EventType.DELETED, "/a")]


def test_deletion_spends_data_and_child_watches(registry: EmbeddedRegistry) -> None:
    data_watch: list[WatchEvent] = []
    child_watch: list[WatchEvent] = []
    registry.create("/a")
    registry.get("/a", data_watch.append)
    registry.children("/a", child_watch.append)
    registry.delete("/a")
    registry.create("/a")
    assert data_watch == child_watch == [WatchEvent(EventType.DELETED, "/a")]


def test_a_write_that_failed_fires_nothing(registry: EmbeddedRegistry) -> None:
    seen: list[WatchEvent] = []
    registry.exists("/a", seen.append)
    with pytest.raises(NoNodeError):
        registry.multi([Create("/a"), Delete("/nothing")])
    with pytest.raises(NoNodeError):
        registry.get("/missing", seen.append)
    registry.create("/missing")
    assert seen == []


def test_a_watch_that_calls_the_registry_is_told_so_and_harms_nobody(registry: EmbeddedRegistry) -> None:
    errors: list[Exception] = []

    def calls_back(event: WatchEvent) -> None:
        try:
            registry.get("/")
        except RuntimeError as error:
            errors.append(error)
            raise

    registry.exists("/a", calls_back)
    registry.create("/a")
    assert len(errors) == 1
    assert registry.children("/") == ["a"]


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


def test_a_closed_registry_says_so(registry: EmbeddedRegistry) -> None:
    registry.close()
    registry.close()
    with pytest.raises(RegistryUnavailableError, match="closed"):
        registry.get("/")


def test_many_threads_see_every_write_once(registry: EmbeddedRegistry) -> None:
    registry.create("/counter", b"0")

    def count() -> None:
        for _ in range(50):
            while True:
                data, stat = registry.get("/counter")
                try:
                    registry.set("/counter", b"%d" % (int(data) + 1), stat.version)
                    break
                except BadVersionError:
                    continue

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.get("/counter")[0] == b"200"


def test_trees_are_made_and_removed_whole(registry: EmbeddedRegistry) -> None:
    create_path(registry, "/a/b/c")
    create_path(registry, "/a/b/d")
    create_path(registry, "/a/b/d")
    assert registry.children_of_many(["/a", "/a/b", "/x"]) == [["b"], ["c", "d"], None]
    delete_trees(registry, ["/a", "/absent"])
    delete_trees(registry, ["/a"])
    assert registry.children("/") == []


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
