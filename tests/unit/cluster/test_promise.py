"""A promise is settled once, and whoever watches learns of it, whichever comes first."""

import gc
import itertools
import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.cluster import promise as promise_module
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.interleaving import Interleaving, TurnLock


def watched(promise: Promise[Any]) -> list[Any]:
    seen: list[Any] = []
    promise.watch(lambda response, error: seen.append((response, error)))
    return seen


def refuse(_: object) -> int:
    raise ValueError("refused")


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


def test_of_many_that_settle_one_wins_and_each_watcher_is_called_once() -> None:
    for _ in range(100):
        promise: Promise[int] = Promise()
        won: list[int] = []

        def settle(number: int, promise: Promise[int] = promise, won: list[int] = won) -> None:
            if promise.complete(number):
                won.append(number)

        threads = [threading.Thread(target=settle, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        seen = [watched(promise) for _ in range(3)]
        for thread in threads:
            thread.join()

        assert len(won) == 1
        assert seen == [[(won[0], None)]] * 3


def test_a_watcher_that_fails_harms_neither_who_settles_nor_the_other_watchers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    promise: Promise[int] = Promise()
    promise.watch(lambda *_: refuse(_))
    seen = watched(promise)

    with caplog.at_level(logging.ERROR):
        assert promise.complete(1)

    assert seen == [(1, None)]
    assert "ValueError: refused" in caplog.text
    with pytest.raises(ValueError, match="refused"):
        promise.watch(lambda *_: refuse(_))


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_response_becomes_what_is_made_of_it_and_an_error_too(is_settled: bool) -> None:
    def settled_or_not(settle: Callable[[Promise[int]], object], then: Callable[[Promise[int]], Any]) -> Any:
        promise: Promise[int] = Promise()
        if is_settled:
            settle(promise)
            return watched(then(promise))[0]
        seen = watched(then(promise))
        assert seen == []
        settle(promise)
        return seen[0]

    error = KeyError("lost")
    further: Promise[str] = Promise()
    further.complete("further")
    assert settled_or_not(lambda p: p.complete(4), lambda p: p.then(str)) == ("4", None)
    assert settled_or_not(lambda p: p.complete(4), lambda p: p.then(lambda _: further)) == ("further", None)
    assert settled_or_not(lambda p: p.fail(error), lambda p: p.then(str)) == (None, error)
    assert settled_or_not(lambda p: p.fail(error), lambda p: p.then(str, repr)) == ("KeyError('lost')", None)
    response, failure = settled_or_not(lambda p: p.fail(error), lambda p: p.then(str, refuse))
    assert (response, str(failure)) == (None, "refused")


def test_what_is_made_of_a_response_may_fail_or_come_later() -> None:
    promise: Promise[int] = Promise()
    later: Promise[str] = Promise()
    failing, further = watched(promise.then(refuse)), watched(promise.then(lambda _: later))

    promise.complete(1)

    assert [str(error) for _, error in failing] == ["refused"]
    assert further == []
    later.complete("now")
    assert further == [("now", None)]


def test_a_response_that_is_there_is_given_at_once_and_an_error_raised() -> None:
    waiting, failed, kept = Promise[int](), Promise[int](), Promise[None]()
    failed.fail(KeyError("lost"))
    kept.complete(None)

    assert waiting.or_response() is waiting
    assert kept.or_response() is None
    with pytest.raises(KeyError):
        failed.or_response()


def test_who_may_wait_gets_the_result_or_learns_that_there_is_none() -> None:
    promise: Promise[int] = Promise()
    with pytest.raises(TimeoutError):
        promise.result(0.001)

    thread = threading.Thread(target=promise.complete, args=(3,))
    thread.start()

    assert promise.result(60) == 3
    thread.join()


def test_gathered_responses_come_in_any_order_and_are_given_in_their_own_once() -> None:
    for order in itertools.permutations(range(3)):
        promises = [Promise[int]() for _ in range(3)]
        seen = watched(gather(promises, list))

        for index in order:
            assert seen == []
            promises[index].complete(index * 10)
            promises[index].complete(99)

        assert seen == [([0, 10, 20], None)]


def test_the_last_of_many_threads_brings_what_was_gathered() -> None:
    for _ in range(100):
        promises = [Promise[int]() for _ in range(4)]
        threads = [threading.Thread(target=promise.complete, args=(number,)) for number, promise in enumerate(promises)]
        for thread in threads[:2]:
            thread.start()
        seen = watched(gather(promises, list))
        for thread in threads[2:]:
            thread.start()
        for thread in threads:
            thread.join()

        assert seen == [([0, 1, 2, 3], None)]


@pytest.mark.parametrize("seed", range(100))
def test_gathering_goes_on_whoever_comes_between(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Interleaving(seed, (promise_module,), chance=0.05)
    monkeypatch.setattr(promise_module, "threading", SimpleNamespace(Lock=lambda: TurnLock(turns)))
    promises = [Promise[int]() for _ in range(3)]
    further: Promise[int] = Promise()
    seen: list[Any] = []

    def begin() -> None:
        gather([*promises[:2], promises[2].then(lambda _: further)], list).watch(lambda *outcome: seen.append(outcome))

    turns.run(begin, *[partial(promise.complete, number) for number, promise in enumerate([*promises, further])])

    assert seen == [([0, 1, 3], None)]


def test_nothing_is_gathered_at_once_and_so_is_much_that_is_there() -> None:
    assert watched(gather([], len)) == [(0, None)]

    promises = [Promise[int]() for _ in range(5_000)]
    for promise in promises:
        promise.complete(1)

    assert watched(gather(promises, sum)) == [(5_000, None)]


def test_much_that_comes_from_the_last_to_the_first_is_gathered() -> None:
    promises = [Promise[int]() for _ in range(5_000)]
    seen = watched(gather(promises, sum))

    for promise in reversed(promises):
        promise.complete(1)

    assert seen == [(5_000, None)]


def test_an_error_fails_what_is_gathered_when_all_have_come() -> None:
    promises = [Promise[int]() for _ in range(2)]
    seen, refused = watched(gather(promises, list)), watched(gather([], refuse))
    promises[1].fail(KeyError("lost"))
    assert seen == []

    promises[0].complete(1)

    assert [type(error) for _, error in seen + refused] == [KeyError, ValueError]


class Response:
    """One that can be known to be gone."""


@pytest.mark.parametrize("is_settled", [True, False])
def test_what_was_answered_is_not_left_to_the_garbage_collector(is_settled: bool) -> None:
    promises = [Promise[Response]() for _ in range(2)]
    response = Response()
    kept = weakref.ref(response)
    gc.disable()
    try:
        gathered = None if is_settled else gather(promises, list).then(len)
        for promise in promises:
            promise.complete(response)
        gathered = gathered or gather(promises, list).then(len)
        assert gathered.result() == 2
        del promises, promise, response, gathered
        assert kept() is None
    finally:
        gc.enable()


def lose(kept: Response, *_: object) -> Response:
    raise ValueError("lost")


def keep(kept: Response, *_: object) -> Response:
    return kept


def fail_then(promise: Promise[Response], response: Response) -> Promise[Any]:
    later = promise.then(partial(lose, response))
    promise.complete(response)
    return later


def hand_on(promise: Promise[Response], response: Response) -> Promise[Any]:
    later = promise.then(partial(keep, response))
    promise.settle_by(partial(lose, response))
    return later


def fail_gathered(promise: Promise[Response], response: Response) -> Promise[Any]:
    promise.complete(response)
    return gather([promise], partial(lose, response))


def gather_failed(promise: Promise[Response], response: Response) -> Promise[Any]:
    promise.settle_by(partial(lose, response))
    return gather([promise], partial(keep, response))


def fail_for_a_cause(promise: Promise[Response], response: Response) -> Promise[Any]:
    def unknown() -> Response:
        held = [promise, response]
        try:
            refuse(held)
        except ValueError as cause:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR) from cause
        return response

    promise.settle_by(unknown)
    return promise


@pytest.mark.parametrize("fail", [fail_then, hand_on, fail_gathered, gather_failed, fail_for_a_cause])
def test_what_failed_is_not_left_to_the_garbage_collector(
    fail: Callable[[Promise[Response], Response], Promise[Any]],
) -> None:
    response = Response()
    kept = weakref.ref(response)
    gc.disable()
    try:
        failed = fail(Promise(), response)
        with pytest.raises((ValueError, BrokerError)):
            failed.result()
        del response
        failed.fail(ValueError())
        del failed
        assert kept() is None
    finally:
        gc.enable()


def test_an_error_nobody_expected_says_where_it_came_from() -> None:
    promise: Promise[int] = Promise()
    promise.settle_by(lambda: refuse(0))

    (error,) = [failure for _, failure in watched(promise)]
    assert error.__traceback__ is None
    assert "in refuse" in error.__notes__[0]


def test_what_is_gathered_says_whether_its_effects_are_complete() -> None:
    waiting = [Promise[int]()]

    assert gather(waiting, sum, effects_complete=True).effects_complete
    assert not gather(waiting, sum).effects_complete
