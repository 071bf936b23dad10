"""Who waits until what goes on is over is told once, when the last of it is, and of nothing that begins later."""

import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest

from kavka.broker.requests import turns as room
from kavka.broker.requests.turns import Turn, Turns


def test_where_nothing_goes_on_who_waits_is_told_at_once() -> None:
    turns = Turns()
    kept = [turns.new() for _ in range(3)]
    over: list[str] = []

    turns.when_over(lambda: over.append("told"))
    assert over == ["told"]
    assert not any(turn.at_end for turn in kept)


def test_who_waits_is_told_by_the_last_that_went_on() -> None:
    turns = Turns()
    one, two, later = (turns.new() for _ in range(3))
    over: list[str] = []
    with one:
        with two:
            turns.when_over(lambda: over.append("told"))
        assert over == []
        with later:
            pass
        assert over == []
        with later:
            turns.when_over(lambda: over.append("another"))
            assert over == []
    assert over in (["told", "another"], ["another", "told"])


def test_turns_of_threads_that_have_ended_are_forgotten() -> None:
    turns = Turns()
    for _ in range(10):
        with turns.new():
            pass
    gc.collect()
    assert not list(turns._turns)


def test_who_gives_up_is_told_nothing_and_nothing_of_him_stays() -> None:
    turns = Turns()
    one, two, hung = (turns.new() for _ in range(3))
    told: list[str] = []
    with hung:
        with one:
            with two:
                wait = turns.when_over(lambda: told.append("given up"))
            others = turns.when_over(lambda: told.append("others"))
            assert list(hung.at_end) == [wait, others]
            wait.give_up()
            assert list(hung.at_end) == list(one.at_end) == [others]
        wait.give_up()
    assert told == ["others"]
    others.give_up()
    assert told == ["others"]


class TurnThatBegins(Turn):
    """One that begins just behind a look that has found it over."""

    __slots__ = ("begins", "is_on")

    def __init__(self) -> None:
        self.begins: Callable[[], None] | None = None
        self.is_on = False
        super().__init__()

    @property
    def goes_on(self) -> bool:
        found, begins, self.begins = self.is_on, self.begins, None
        if begins is not None:
            begins()
        return found

    @goes_on.setter
    def goes_on(self, goes_on: bool) -> None:
        self.is_on = goes_on


def test_who_waits_for_a_turn_is_not_told_by_who_found_it_over_before_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, told = Turns(), list[str]()
    monkeypatch.setattr(room, "Turn", TurnThatBegins)
    turn = turns.new()
    assert isinstance(turn, TurnThatBegins)

    def begin() -> None:
        turn.goes_on = True
        turns.when_over(lambda: told.append("what was revoked during the turn"))

    turn.begins = begin
    turns.when_over(lambda: told.append("what was revoked before"))
    assert told == ["what was revoked before"]

    turn.goes_on = False
    turn.tell()
    assert told == ["what was revoked before", "what was revoked during the turn"]


def test_nobody_is_forgotten_or_told_twice_where_all_happens_at_once() -> None:
    turns = Turns()
    stop = threading.Event()

    def run() -> None:
        turn = turns.new()
        while not stop.is_set():
            # As who runs requests does it.
            turn.goes_on = True
            turn.goes_on = False
            if turn.at_end:
                turn.tell()

    runners = [threading.Thread(target=run) for _ in range(3)]
    for each in runners:
        each.start()
    told = [0] * 300

    def tell(place: int, event: threading.Event) -> None:
        told[place] += 1
        event.set()

    try:
        for place in range(len(told)):
            event = threading.Event()
            turns.when_over(partial(tell, place, event))
            assert event.wait(60)
    finally:
        stop.set()
        for each in runners:
            each.join()
    assert told == [1] * len(told)
