"""A promise is settled once, and whoever watches learns of it, whichever comes first."""

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from kavka.broker.waiting.promise import Promise

Outcome = tuple[int | None, BaseException | None]


def watched(promise: Promise[int]) -> list[Outcome]:
    seen: list[Outcome] = []
    promise.watch(lambda response, error: seen.append((response, error)))
    return seen


@pytest.mark.parametrize("watch_first", [True, False])
def test_the_watcher_learns_the_first_outcome_only(watch_first: bool) -> None:
    promise: Promise[int] = Promise()
    seen = watched(promise) if watch_first else []
    assert not promise.done

    assert promise.complete(1)
    assert not promise.complete(2)
    assert not promise.fail(ValueError())

    assert (seen or watched(promise)) == [(1, None)]
    assert promise.done


def test_of_many_that_settle_one_wins_and_the_watcher_is_called_once() -> None:
    for _ in range(100):
        promise: Promise[int] = Promise()
        won: list[int] = []

        def settle(number: int, promise: Promise[int] = promise, won: list[int] = won) -> None:
            if promise.complete(number):
                won.append(number)

        threads = [threading.Thread(target=settle, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        seen = watched(promise)
        for thread in threads:
            thread.join()

        assert [response for response, _ in seen] == won
        assert len(won) == 1


def test_a_futures_result_is_transformed() -> None:
    future: Future[int] = Future()
    seen = watched(Promise.of_future(future, lambda value: value + 1))
    future.set_result(4)

    assert seen == [(5, None)]


def test_what_a_future_or_its_transformation_raises_fails_the_promise() -> None:
    def refuse(value: Any) -> int:
        raise ValueError("transformed")

    for failing, error in ((ValueError("raised"), "raised"), (None, "transformed")):
        future: Future[int] = Future()
        seen = watched(Promise.of_future(future, refuse))
        if failing is None:
            future.set_result(1)
        else:
            future.set_exception(failing)
        assert [str(problem) for _, problem in seen] == [error]
