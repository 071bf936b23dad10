"""What every registry promises of its tree, whoever keeps it: an SQLite file, a process in its memory, or ZooKeeper."""

import threading

import pytest

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Created,
    Delete,
    EventType,
    InvalidNodeError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Registry,
    RegistryUnavailableError,
    SetData,
    WatchEvent,
    children_or_none,
    create_path,
    delete_trees,
)


def test_a_node_has_the_stat_that_zookeeper_gives(registry: Registry) -> None:
    registry.create("/a", b"one")
    created = registry.get("/a")[1]
    registry.create("/a/b")
    registry.set("/a", b"three")
    data, stat = registry.get("/a")
    assert data == b"three"
    assert (created.version, created.czxid, created.mzxid, created.num_children) == (0, created.mzxid, created.czxid, 0)
    assert (stat.version, stat.cversion, stat.num_children, stat.data_size_bytes) == (1, 1, 1, 5)
    assert stat.czxid == created.czxid < stat.pzxid < stat.mzxid
    assert stat.ctime_ms == created.ctime_ms <= stat.mtime_ms
    registry.delete("/a/b")
    assert registry.get("/a")[1].cversion == 2


def test_a_creation_tells_its_path_and_its_zxid(registry: Registry) -> None:
    made = registry.create("/a", b"data")
    sequential = registry.create("/a/n_", b"", sequential=True)
    assert made == Created("/a", registry.get("/a")[1].czxid)
    assert sequential == Created("/a/n_0000000000", registry.get(sequential.path)[1].czxid)
    assert sequential.czxid > made.czxid


def test_an_ephemeral_node_belongs_to_the_session(registry: Registry) -> None:
    registry.create("/e", ephemeral=True)
    assert registry.get("/e")[1].ephemeral_owner == registry.session_id != 0
    assert registry.is_own_session(registry.session_id)
    assert not registry.is_own_session(0)


def test_each_misuse_has_its_error_and_changes_nothing(registry: Registry) -> None:
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


def test_sequential_names_count_every_child_there_ever_was(registry: Registry) -> None:
    registry.create("/q")
    assert registry.create("/q/n_", sequential=True).path == "/q/n_0000000000"
    registry.create("/q/other")
    registry.delete("/q/n_0000000000")
    assert registry.create("/q/n_", sequential=True).path == "/q/n_0000000002"
    with pytest.raises(BadVersionError):
        registry.multi([Create("/q/n_", sequential=True), Check("/q", 7)])
    stat = registry.get("/q")[1]
    assert (stat.cversion + stat.num_children) // 2 == 3, "so many were made"
    assert registry.create("/q/n_", sequential=True).path == "/q/n_0000000003"


def test_multi_applies_all_or_none(registry: Registry) -> None:
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


def test_a_pipeline_goes_on_after_an_error(registry: Registry) -> None:
    results = registry.pipeline([Create("/a"), Create("/a"), Create("/b")])
    assert (results[0], results[2]) == ("/a", "/b")
    assert isinstance(results[1], NodeExistsError)


def test_a_pipeline_stops_when_its_guard_fails(registry: Registry) -> None:
    registry.create("/epoch", b"1")
    guard = Check("/epoch", 0)
    assert registry.pipeline([Create("/a")], guard) == ["/a"]
    with pytest.raises(BadVersionError) as raised:
        registry.pipeline([Create("/b"), SetData("/epoch", b"2"), Create("/c")], guard)
    assert raised.value.path == "/epoch"
    assert registry.children("/") == ["a", "b", "epoch"]


def test_an_operation_of_a_pipeline_that_cannot_be_sent_is_refused_by_itself(registry: Registry) -> None:
    results = registry.pipeline([Create("/a"), Create("/big", bytes((8 << 20) + 1)), Create("b"), Create("/c")])
    assert (results[0], results[3]) == ("/a", "/c")
    assert [type(each) for each in results[1:3]] == [InvalidNodeError, InvalidNodeError]


def test_a_watch_fires_once_in_order_and_before_the_write_is_answered(registry: Registry) -> None:
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


def test_many_nodes_read_at_once_are_watched_as_one_read_by_itself_is(registry: Registry) -> None:
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


def test_deletion_spends_data_and_child_watches(registry: Registry) -> None:
    data_watch: list[WatchEvent] = []
    child_watch: list[WatchEvent] = []
    registry.create("/a")
    registry.get("/a", data_watch.append)
    registry.children("/a", child_watch.append)
    registry.delete("/a")
    registry.create("/a")
    assert data_watch == child_watch == [WatchEvent(EventType.DELETED, "/a")]


def test_a_write_that_failed_fires_nothing(registry: Registry) -> None:
    seen: list[WatchEvent] = []
    registry.exists("/a", seen.append)
    with pytest.raises(NoNodeError):
        registry.multi([Create("/a"), Delete("/nothing")])
    with pytest.raises(NoNodeError):
        registry.get("/missing", seen.append)
    registry.create("/missing")
    assert seen == []


def test_a_watch_that_calls_the_registry_is_told_so_and_harms_nobody(registry: Registry) -> None:
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


def test_a_closed_registry_says_so(registry: Registry) -> None:
    registry.close()
    registry.close()
    with pytest.raises(RegistryUnavailableError, match="closed"):
        registry.get("/")


def test_many_threads_see_every_write_once(registry: Registry) -> None:
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


def test_whatever_is_listed_can_be_read_and_removed(registry: Registry) -> None:
    names = sorted(["a\u00a0b", "\u00b2", "\u2028", "\ud7ff", "\uf900", "~", " ", "..."])
    registry.create("/n")
    for name in names:
        registry.create(f"/n/{name}", b"x")
    assert registry.children("/n") == names
    assert None not in registry.get_many([f"/n/{name}" for name in names])
    assert delete_trees(registry, ["/n"]) == {}


@pytest.mark.parametrize("name", ["\x7f", "\x9f", "\ue000", "\ufff0", "\U0001f600", "\x00", "\ud800"])
def test_what_no_registry_takes_is_no_path(registry: Registry, name: str) -> None:
    with pytest.raises(InvalidNodeError):
        registry.create(f"/{name}")


def test_children_of_what_is_missing_are_none_until_it_is_made(registry: Registry) -> None:
    heard = threading.Event()
    assert children_or_none(registry, "/n") == children_or_none(registry, "/n", lambda _: heard.set()) == []
    registry.create("/n")
    assert heard.wait(60)
    registry.create("/n/c")
    assert children_or_none(registry, "/n") == ["c"]


def test_trees_are_made_and_removed_whole(registry: Registry) -> None:
    create_path(registry, "/a/b/c")
    create_path(registry, "/a/b/d")
    create_path(registry, "/a/b/d")
    assert registry.children_of_many(["/a", "/a/b", "/x"]) == [["b"], ["c", "d"], None]
    delete_trees(registry, ["/a", "/absent"])
    delete_trees(registry, ["/a"])
    assert registry.children("/") == []
