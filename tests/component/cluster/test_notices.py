"""How a broker follows notices: each is read once, those of strangers harm nobody, old ones go."""

from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Any

import pytest

from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.entity_configs import write_config
from kavka.cluster.notices import NOTICE_LIFE_MS, Notices
from kavka.cluster.registry.base import NotPermittedError, create_path, delete_trees
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from tests.support.registries import Clock

PARENTS = ("/some-changes", "/other-changes")


class Guarded:
    """A registry in which some nodes are another owner's. `read` has the paths that were asked for."""

    def __init__(self, registry: MemoryRegistry) -> None:
        self._registry = registry
        self.refused: set[str] = set()
        self.read: list[str] = []

    def get_many(self, paths: Sequence[str], watch: Any = None) -> Any:
        for path in paths:
            if path in self.refused:
                raise NotPermittedError("as an example", path)
        self.read += paths
        return self._registry.get_many(paths, watch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Iterator[Any]:
    memory = MemoryRegistry(MemoryEnsemble(clock))
    for parent in PARENTS:
        create_path(memory, parent)
    yield Guarded(memory)
    memory.close()


def leave(registry: Any, data: bytes, parent: str = PARENTS[0]) -> str:
    path: str = registry.create(f"{parent}/change_", data, sequential=True).path
    return path


def unheard(_event: object) -> None:
    """Nobody is told."""


def test_each_is_new_once_in_every_folder_and_after_what_failed_again(registry: Any, clock: Clock) -> None:
    before = leave(registry, b"before")
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    assert notices.new() == {}
    first, second = leave(registry, b"first"), leave(registry, b"second", PARENTS[1])
    assert notices.new() == {first: b"first", second: b"second"}
    assert notices.new() == {first: b"first", second: b"second"}, "they were not done"
    notices.done()
    assert notices.new() == {}
    notices.done()
    third = leave(registry, b"third")
    registry.read.clear()
    assert notices.new() == {third: b"third"}
    assert registry.read == [third], "those before were read, and are no reason to read them with each that comes"
    assert before in [f"{PARENTS[0]}/{name}" for name in registry.children(PARENTS[0])]


def test_old_ones_go_also_those_from_before_the_start(registry: Any, clock: Clock) -> None:
    leave(registry, b"before")
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    leave(registry, b"later")
    notices.new()
    notices.done()
    clock.time_ms += NOTICE_LIFE_MS + 1
    young = leave(registry, b"young", PARENTS[1])
    assert notices.new() == {young: b"young"}
    notices.done()
    assert [registry.children(parent) for parent in PARENTS] == [[], [young.rpartition("/")[2]]]


def test_one_that_may_not_be_read_is_asked_for_once_and_stays(
    registry: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    registry.refused.add(leave(registry, b"a stranger's"))
    for number in range(3):
        own = leave(registry, b"%d" % number)
        assert notices.new() == {own: b"%d" % number}
        notices.done()
    assert len(caplog.records) == 1
    clock.time_ms += NOTICE_LIFE_MS + 1
    leave(registry, b"young")
    notices.new()
    notices.done()
    assert len(registry.children(PARENTS[0])) == 2


def test_a_broker_whose_clock_is_ahead_takes_none_from_the_others(registry: Any, clock: Clock) -> None:
    notices = Notices(registry, PARENTS, lambda: clock() + 10 * NOTICE_LIFE_MS)
    notices.begin(unheard)
    for _ in range(3):
        leave(registry, b"a change")
        notices.new()
        notices.done()
    assert len(registry.children(PARENTS[0])) == 3


def test_those_of_a_folder_that_was_made_anew_are_others_though_their_names_are_not(
    registry: Any, clock: Clock
) -> None:
    leave(registry, b"before")
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    notices.new()
    assert not notices.has_missed
    delete_trees(registry, [PARENTS[0]])
    create_path(registry, PARENTS[0])
    path = leave(registry, b"after")
    assert notices.new() == {path: b"after"}
    assert notices.has_missed, "there may have been others in between"
    notices.done()
    assert notices.new() == {}
    assert not notices.has_missed


@pytest.mark.parametrize("is_followed", [True, False])
def test_those_that_others_removed_before_they_were_seen_are_missed(
    registry: Any, clock: Clock, *, is_followed: bool
) -> None:
    """As of a broker that a disk has held up for longer than they stay: they may tell of a user that is gone."""
    leave(registry, b"before")
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    seen = leave(registry, b"seen")
    assert notices.new() == {seen: b"seen"}
    assert not notices.has_missed
    notices.done()
    registry.delete(leave(registry, b"unseen"))
    later = {leave(registry, b"later"): b"later"} if is_followed else {}
    assert notices.new() == later
    assert notices.has_missed
    assert notices.new() == later
    assert notices.has_missed, "what they may tell of could not be read yet"
    notices.done()
    registry.delete(seen)
    assert notices.new() == {}
    assert not notices.has_missed
    notices.done()
    last = leave(registry, b"last")
    assert notices.new() == {last: b"last"}
    assert not notices.has_missed


def test_one_that_came_while_the_others_were_listed_is_not_missed_when_it_is_gone(
    registry: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = Notices(registry, PARENTS, clock)
    notices.begin(unheard)
    children = registry.children
    left: list[str] = []

    def leave_and_list(path: str, watch: Any = None) -> list[str]:
        if not left:
            left.append(leave(registry, b"meanwhile"))
        names: list[str] = children(path, watch)
        return names

    monkeypatch.setattr(registry, "children", leave_and_list, raising=False)
    assert list(notices.new().values()) == [b"meanwhile"]
    notices.done()
    registry.delete(left[0])
    assert notices.new() == {}
    assert not notices.has_missed


def test_a_strangers_notice_is_no_reason_to_refuse_what_is_written(registry: Any, clock: Clock) -> None:
    """A configuration that was written, and is applied, was answered with KAFKA_STORAGE_ERROR from then on."""
    heard: list[dict[str, str]] = []
    listener = ConfigNotificationListener(
        registry, lambda _, config: heard.append(config), lambda *_: None, clock, lambda *_: None
    )
    create_path(registry, "/config/changes")
    create_path(registry, "/brokers/topics/t")
    listener.start()
    try:
        registry.refused.add(registry.create("/config/changes/config_change_", b"a stranger's", sequential=True).path)
        outcomes: Queue[BaseException | None] = Queue()

        def write() -> None:
            write_config(registry, "topics/t", {"retention.ms": "1"})

        written = listener.write(write)
        written.watch(lambda _, error: outcomes.put(error))
        assert outcomes.get(timeout=60) is None
    finally:
        listener.stop()
    assert heard == [{"retention.ms": "1"}]
