"""Partitions that go from one fetcher to another, or wait for one, while records and orders go on to come."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.broker.replication import copying
from kavka.broker.replication.fetcher import Fetcher
from kavka.broker.replication.fetcher_manager import FetcherManager, Order, fetcher_number
from kavka.broker.replication.followed_partitions import Followed
from tests.support.interleaving import WatchedLock
from tests.support.processes import wait_until
from tests.support.replicas import DirectLeader, Replicas, SteppedFetcher

KEY = (Replicas.TOPIC, 0)


@pytest.mark.parametrize("step", ["append", "cut_to_common_history"])
@pytest.mark.parametrize("way", ["another number of fetchers", "another fetcher in the same epoch"])
def test_nobody_is_handed_over_within_a_step(
    tmp_path: Path, step: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(2)
    replicas.produce(2, b"never copied")
    epoch = replicas.elect(1)
    replicas.produce(1, b"a", b"b")
    manager = replicas.managers[2]
    (old,) = manager.fetchers
    size = next(size for size in range(2, 9) if fetcher_number(KEY, size) != fetcher_number(KEY, 1))
    comes_to_rest = threading.Event()
    monkeypatch.setattr(old.partitions, "steps", WatchedLock(comes_to_rest), raising=False)
    ordinary: Callable[..., object] = getattr(copying, step)
    others: list[threading.Thread] = []

    def hand_over() -> None:
        if way == "another number of fetchers":
            manager.resize(size)
        else:
            (followed,) = old.partitions.all()
            manager.unfollow([KEY])
            manager.follow([Order(followed.partition, followed.log, 1, epoch)])
        (new,) = manager.fetchers
        for _ in range(4):
            new.step()
        comes_to_rest.set()

    def disturbed(*arguments: object) -> object:
        if not others:
            others.append(threading.Thread(target=hand_over))
            others[0].start()
            assert comes_to_rest.wait(60)
        return ordinary(*arguments)

    monkeypatch.setattr(copying, step, disturbed)
    for _ in range(4):
        old.step()
    others[0].join()

    assert manager.failed == frozenset()
    as_told = replicas.cores[1].replicas.partitions[KEY].followers[2]
    # Less than it has, while what the old fetcher asked for came last.
    assert replicas.log(2).log_end_offset >= as_told.end_offset >= 0
    replicas.catch_up([2])
    assert replicas.contents(2) == replicas.contents(1)
    assert as_told.end_offset == replicas.log(2).log_end_offset == 2
    assert len(old.partitions) == 0
    replicas.close()


def test_an_end_that_moved_under_a_fetch_is_asked_for_again(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.produce(1, b"b")

    def append_first(answer: object) -> None:
        records = replicas.contents(1)
        replicas.log(2).append_as_follower(records[: len(records) // 2], 0)

    way = replicas.leaders[2, 1]
    way.tamper = append_first
    replicas.step(2)
    way.tamper = lambda answer: None
    assert replicas.managers[2].failed == frozenset()
    replicas.catch_up([2])

    assert replicas.contents(2) == replicas.contents(1)
    replicas.close()


@pytest.mark.parametrize("by", ["time", "order"])
def test_a_fetcher_for_which_there_was_no_thread_begins_later(
    tmp_path: Path, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = Replicas(tmp_path, partitions=2)
    made: list[Fetcher] = []
    no_threads = [True]

    class Threaded(Fetcher):
        def start(self) -> None:
            if no_threads:
                raise RuntimeError("can't start new thread")
            super().start()

    def new(source: int, number: int, on_failed: Callable[[Followed], None]) -> Fetcher:
        leader = DirectLeader(2, lambda: replicas.cores[source], 17)
        made.append(Threaded("fetcher", leader, backoff_ms=lambda: 10, on_failed=on_failed))
        return made[-1]

    manager = FetcherManager(new, 1)
    replicas.managers[2] = manager
    replicas.cores[2].replicas._followers = manager
    for index in range(2):
        replicas.elect(1, index)
        replicas.produce(1, b"a", index=index)
    assert [each.is_alive for each in made] == [False]
    assert "no thread for a fetcher" in caplog.text

    no_threads.clear()
    if by == "time":
        manager.resize(1)
    else:
        replicas.elect(1, 1)

    wait_until(lambda: all(replicas.log(2, index).log_end_offset == 1 for index in range(2)), 60, "nothing was copied")
    assert len(made) == 1
    replicas.close()
    assert not made[0].is_alive


def test_who_has_no_thread_when_all_ends_is_not_waited_for() -> None:
    class Threadless(SteppedFetcher):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    manager = FetcherManager(
        lambda source, number, on_failed: Threadless(
            "fetcher", DirectLeader(2, lambda: None, 17), backoff_ms=lambda: 10, on_failed=on_failed
        ),
        1,
    )
    manager.follow([])
    manager.stop()
