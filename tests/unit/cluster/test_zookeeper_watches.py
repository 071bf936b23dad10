"""Watches over disconnects and sessions, without a ZooKeeper."""

import pytest

from kavka.cluster.registry.base import EventType, WatchEvent
from kavka.cluster.registry.zookeeper_watches import Kind, Watched, ZooKeeperWatches

DATA = Watched(Kind.DATA, "/n")
CHILDREN = Watched(Kind.CHILDREN, "/n")


@pytest.fixture
def watches() -> ZooKeeperWatches:
    return ZooKeeperWatches()


def test_an_event_spends_the_watches_that_it_concerns(watches: ZooKeeperWatches) -> None:
    data: list[WatchEvent] = []
    children: list[WatchEvent] = []
    watches.set_(DATA, watches.arm(DATA, data.append), (1, 1))
    watches.set_(CHILDREN, watches.arm(CHILDREN, children.append), (1, 1))
    watches.fire(WatchEvent(EventType.CHILDREN_CHANGED, "/n"))
    watches.fire(WatchEvent(EventType.DATA_CHANGED, "/other"))
    assert (data, len(children)) == ([], 1)
    watches.fire(WatchEvent(EventType.DELETED, "/n"))
    watches.fire(WatchEvent(EventType.DELETED, "/n"))
    assert (len(data), len(children)) == (1, 1)
    assert watches.nodes() == []


def test_an_event_that_comes_before_the_answer_fires_and_is_not_set_again(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []
    armed = watches.arm(DATA, seen.append)
    watches.fire(WatchEvent(EventType.DATA_CHANGED, "/n"))
    assert watches.set_(DATA, armed, (1, 1))
    assert (len(seen), watches.nodes()) == (1, [])


def test_a_read_that_failed_leaves_no_watch_but_those_of_others(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []
    first = watches.arm(DATA, seen.append)
    watches.set_(DATA, first, None)
    watches.withdraw(DATA, watches.arm(DATA, seen.append))
    assert watches.nodes() == [DATA]
    other = watches.arm(CHILDREN, seen.append)
    watches.withdraw(CHILDREN, other)
    watches.fire(WatchEvent(EventType.CHILDREN_CHANGED, "/n"))
    assert seen == []


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        ((1, 1), (1, 2), EventType.DATA_CHANGED),
        ((1, 1), (3, 3), EventType.DATA_CHANGED),
        ((1, 1), None, EventType.DELETED),
        (None, (3, 3), EventType.DATA_CHANGED),
    ],
)
def test_what_a_disconnect_hid_is_told(
    watches: ZooKeeperWatches, before: tuple[int, int] | None, after: tuple[int, int] | None, event: EventType
) -> None:
    seen: list[WatchEvent] = []
    watches.set_(DATA, watches.arm(DATA, seen.append), before)
    watches.compare(DATA, before)
    assert seen == []
    watches.compare(DATA, after)
    watches.compare(DATA, after)
    assert seen == [WatchEvent(event, "/n")]


def test_of_two_readers_only_who_saw_something_else_is_told(watches: ZooKeeperWatches) -> None:
    early: list[WatchEvent] = []
    late: list[WatchEvent] = []
    watches.set_(CHILDREN, watches.arm(CHILDREN, early.append), (1, 1))
    watches.set_(CHILDREN, watches.arm(CHILDREN, late.append), (1, 2))
    watches.compare(CHILDREN, (1, 2))
    assert (len(early), len(late)) == (1, 0)
    assert watches.nodes() == [CHILDREN]


def test_a_read_that_is_not_answered_yet_is_left_to_its_reader(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []
    armed = watches.arm(DATA, seen.append)
    assert watches.nodes() == []
    watches.compare(DATA, (9, 9))
    assert seen == []
    assert watches.set_(DATA, armed, (9, 9))
    watches.fire(WatchEvent(EventType.DATA_CHANGED, "/n"))
    assert len(seen) == 1


def test_a_lost_session_takes_all_watches_and_its_readers_hear_of_it(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []
    watches.set_(DATA, watches.arm(DATA, seen.append), (1, 1))
    reading = watches.arm(CHILDREN, seen.append)
    watches.clear()
    assert not watches.set_(CHILDREN, reading, (1, 1))
    watches.fire(WatchEvent(EventType.DELETED, "/n"))
    assert seen == []


def test_a_watch_that_fails_harms_no_other(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []

    def fails(event: WatchEvent) -> None:
        raise ValueError

    watches.set_(DATA, watches.arm(DATA, fails), (1, 1))
    watches.set_(DATA, watches.arm(DATA, seen.append), (1, 1))
    watches.fire(WatchEvent(EventType.DELETED, "/n"))
    assert len(seen) == 1


def test_watches_on_what_cannot_be_watched_any_more_fire(watches: ZooKeeperWatches) -> None:
    seen: list[WatchEvent] = []
    watches.set_(CHILDREN, watches.arm(CHILDREN, seen.append), (1, 1))
    watches.arm(CHILDREN, lambda _: None)
    watches.give_up(CHILDREN)
    watches.give_up(CHILDREN)
    assert seen == [WatchEvent(EventType.CHILDREN_CHANGED, "/n")]
    assert watches.nodes() == []
