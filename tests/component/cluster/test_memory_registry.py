"""The registry in memory: sessions that end when somebody says so, and what those who share the tree hear of it."""

import pytest

from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    EventType,
    OutOfReachError,
    SessionEvent,
    SetData,
    WatchEvent,
)
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from tests.support.registries import Clock


@pytest.fixture
def ensemble() -> MemoryEnsemble:
    return MemoryEnsemble(Clock())


@pytest.fixture
def first(ensemble: MemoryEnsemble) -> MemoryRegistry:
    return MemoryRegistry(ensemble)


@pytest.fixture
def second(ensemble: MemoryEnsemble) -> MemoryRegistry:
    return MemoryRegistry(ensemble)


def test_sessions_share_the_tree_and_hear_of_each_others_writes(first: MemoryRegistry, second: MemoryRegistry) -> None:
    seen: list[WatchEvent] = []
    second.exists("/a", seen.append)
    first.create("/a", b"data")
    assert seen == [WatchEvent(EventType.CREATED, "/a")]
    assert second.get("/a")[0] == b"data"
    assert first.session_id != second.session_id


def test_an_expired_session_takes_its_nodes_and_watches_with_it_and_another_begins(
    first: MemoryRegistry, second: MemoryRegistry
) -> None:
    heard: list[SessionEvent] = []
    own: list[WatchEvent] = []
    others: list[WatchEvent] = []
    first.on_session_event(heard.append)
    first.create("/e", ephemeral=True)
    first.create("/p")
    first.exists("/e", own.append)
    second.exists("/e", others.append)
    before = first.session_id

    first.expire()

    assert heard == [SessionEvent.EXPIRED, SessionEvent.ESTABLISHED]
    assert others == [WatchEvent(EventType.DELETED, "/e")]
    assert own == []
    assert second.children("/") == ["p"]
    assert first.session_id not in (0, before)
    assert first.is_own_session(before)
    assert not first.is_own_session(second.session_id)
    first.create("/e", ephemeral=True)
    assert second.get("/e")[1].ephemeral_owner == first.session_id


def test_a_lost_session_is_out_of_reach_for_good(first: MemoryRegistry, second: MemoryRegistry) -> None:
    heard: list[SessionEvent] = []
    first.on_session_event(heard.append)
    first.create("/e", ephemeral=True)

    first.lose()
    first.expire()

    assert (heard, first.session_id, second.children("/")) == ([SessionEvent.EXPIRED], 0, [])
    for call in (lambda: first.get("/"), lambda: first.create("/x"), lambda: first.delete("/x")):
        with pytest.raises(OutOfReachError):
            call()
    first.close()
    first.close()


def test_closing_ends_one_session_and_leaves_the_others_nodes(first: MemoryRegistry, second: MemoryRegistry) -> None:
    first.create("/one", ephemeral=True)
    second.create("/two", ephemeral=True)
    seen: list[WatchEvent] = []
    second.children("/", seen.append)
    first.close()
    assert second.children("/") == ["two"]
    assert seen == [WatchEvent(EventType.CHILDREN_CHANGED, "/")]


def test_a_multi_that_fails_leaves_the_bookkeeping_as_it_was(first: MemoryRegistry) -> None:
    first.create("/a", b"0")
    first.create("/a/b", b"1")
    before = [first.get(path) for path in ("/", "/a", "/a/b")]
    with pytest.raises(BadVersionError):
        first.multi([SetData("/a", b"x"), Delete("/a/b"), Create("/c"), Create("/a/b"), SetData("/a", b"y", 7)])
    assert [first.get(path) for path in ("/", "/a", "/a/b")] == before
    assert first.create("/a/n_", sequential=True).path == "/a/n_0000000001"


def test_who_shares_a_silent_tree_hears_of_nothing(
    ensemble: MemoryEnsemble, first: MemoryRegistry, second: MemoryRegistry
) -> None:
    seen: list[WatchEvent] = []
    first.create("/e", ephemeral=True)
    second.exists("/e", seen.append)
    ensemble.fall_silent()
    first.close()
    assert second.children("/") == []
    assert seen == []
