"""A wait for a promise that has an end brings what the promise does, or what is said of lateness: once."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from kavka.broker.waiting import purgatory as purgatory_module
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.cluster import promise as promise_module
from kavka.cluster.promise import Promise
from tests.support.interleaving import Interleaving, TurnLock

LATE = -1


@pytest.fixture
def purgatory() -> Purgatory:
    return Purgatory(Timer(lambda failure: None))


def watched(promise: Promise[int]) -> list[tuple[int | None, BaseException | None]]:
    seen: list[tuple[int | None, BaseException | None]] = []
    promise.watch(lambda response, error: seen.append((response, error)))
    return seen


def refuse() -> int:
    raise ValueError("refused")


def test_what_is_settled_is_not_waited_for(purgatory: Purgatory) -> None:
    promise: Promise[int] = Promise()
    promise.complete(1)

    assert purgatory.within(60_000, promise, refuse).result() == 1
    assert purgatory.size == 0


@pytest.mark.parametrize("settle", [lambda p: p.complete(1), lambda p: p.fail(KeyError("lost"))])
def test_what_comes_in_time_is_brought(purgatory: Purgatory, settle: Callable[[Promise[int]], object]) -> None:
    promise: Promise[int] = Promise()
    seen = watched(purgatory.within(60_000, promise, refuse))
    assert (seen, purgatory.size) == ([], 1)

    settle(promise)

    assert seen == watched(promise)
    assert purgatory.size == 0


def test_what_is_late_is_said_to_be_and_comes_in_vain(purgatory: Purgatory) -> None:
    promise: Promise[int] = Promise()
    seen, failing = (
        watched(purgatory.within(60_000, promise, lambda: LATE)),
        watched(purgatory.within(60_000, promise, refuse)),
    )

    purgatory.expire_all()
    promise.complete(1)

    assert seen == [(LATE, None)]
    assert [str(error) for _, error in failing] == ["refused"]
    assert purgatory.size == 0


@pytest.mark.parametrize("seed", range(100))
def test_a_promise_and_the_clock_may_race(purgatory: Purgatory, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Interleaving(seed, (purgatory_module, promise_module), chance=0.05)
    for module in (purgatory_module, promise_module):
        monkeypatch.setattr(module, "threading", SimpleNamespace(Lock=lambda: TurnLock(turns)))
    promise: Promise[int] = Promise()
    seen: list[tuple[int | None, BaseException | None]] = []

    def wait() -> None:
        bounded = purgatory.within(60_000, promise, lambda: LATE)
        bounded.watch(lambda response, error: seen.append((response, error)))

    turns.run(wait, partial(promise.complete, 1), purgatory.expire_all, purgatory.expire_all)

    assert seen in ([(1, None)], [(LATE, None)])
    assert purgatory.size == 0
