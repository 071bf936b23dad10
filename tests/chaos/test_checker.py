"""The checker finds each kind of fault in a made-up history, and nothing in one that is sound."""

from collections.abc import Iterable

import pytest

from tests.chaos.checker import (
    End,
    contradictions,
    copied_wrongly,
    doubled,
    gone_back,
    lost,
    never_sent,
    of_another_life,
    out_of_order,
    read_and_cut,
    skipped,
    torn,
)
from tests.chaos.history import (
    NOWHERE,
    Acknowledged,
    Fate,
    History,
    Isolation,
    Jump,
    Life,
    Log,
    Look,
    Place,
    Transaction,
)

HERE: Place = ("visits", 0)
THERE: Place = ("visits", 1)


def told(number: int, offset: int, producer: str = "p", place: Place = HERE) -> Acknowledged:
    return Acknowledged(producer, place, number, offset, f"{producer}:{number}")


def end(log: Log, committed: Log | None = None) -> End:
    return End({HERE: log}, {HERE: log if committed is None else committed}, {})


def one(found: Iterable[str]) -> str:
    (sentence,) = found
    return sentence


def test_a_sound_history_is_not_contradicted() -> None:
    history = History(idempotent={"p"})
    history.note_sent("p", HERE, 2)
    for each in (told(0, 0), told(1, 1)):
        history.note_acknowledged(each)
    history.note_read("r", Isolation.ALL, HERE, [(0, "p:0"), (1, "p:1")])
    history.note_read("s", Isolation.ALL, HERE, [(0, "p:0")])
    history.note_transaction("t", Fate.UNKNOWN, [(HERE, "t:1")])

    # The last one was sent, and its producer does not know.
    assert contradictions(history, end([(0, "p:0"), (1, "p:1"), (3, "p:2")])) == []


@pytest.mark.parametrize("log", [[], [(0, "p:0")], [(1, "p:0"), (0, "p:1")], [(0, "p:1"), (1, "p:0")]])
def test_what_was_acknowledged_must_lie_where_it_was_said_to_be(log: Log) -> None:
    assert len(list(lost([told(0, 0), told(1, 1)], {HERE: log}))) == 2 - (log[:1] == [(0, "p:0")])


def test_a_duplicate_of_unknown_place_must_be_there_somewhere() -> None:
    acknowledged = [told(0, 0), told(1, NOWHERE), told(2, 2)]
    assert list(out_of_order(acknowledged)) == []
    assert list(lost(acknowledged, {HERE: [(0, "p:0"), (1, "p:1"), (2, "p:2")]})) == []
    assert "p:1" in one(lost(acknowledged, {HERE: [(0, "p:0"), (2, "p:2")]}))


def test_later_records_lie_behind_earlier_ones_whatever_comes_first_to_be_known() -> None:
    assert list(out_of_order([told(1, 7), told(0, 5), told(2, 8), told(0, 9, place=THERE), told(1, 0, "q")])) == []
    assert "p's 1 at 4" in one(out_of_order([told(0, 5), told(1, 4)]))
    assert "p's 2 at 5" in one(out_of_order([told(2, 5), told(0, 5)]))


def test_an_idempotent_producers_records_are_there_once_and_in_order() -> None:
    assert list(doubled({"p"}, {HERE: [(0, "p:0"), (1, "q:0"), (2, "q:0"), (3, "p:2")], THERE: [(0, "p:0")]})) == []
    assert "p:0 at 5" in one(doubled({"p"}, {HERE: [(0, "p:0"), (5, "p:0")]}))
    assert "p:1 at 1" in one(doubled({"p"}, {HERE: [(0, "p:2"), (1, "p:1"), (2, "p:3")]}))


def test_nothing_is_there_that_nobody_sent() -> None:
    log = [(0, "p:0"), (1, "p:1"), (2, "t:a:0")]
    assert list(never_sent({("p", HERE): 2}, {HERE: log})) == []
    assert "p:1" in one(never_sent({("p", HERE): 1}, {HERE: log}))
    assert len(list(never_sent({("p", THERE): 2}, {HERE: log}))) == 2


def test_what_was_read_is_never_cut() -> None:
    seen = {(Isolation.ALL, HERE): {0: "p:0", 1: "p:1"}, (Isolation.COMMITTED, HERE): {0: "p:0"}}
    assert list(read_and_cut(seen, end([(0, "p:0"), (1, "p:1")]))) == []
    assert "p:1 at 1" in one(read_and_cut(seen, end([(0, "p:0"), (1, "p:2")])))
    assert "read_committed" in one(read_and_cut(seen, end([(0, "p:0"), (1, "p:1")], committed=[(1, "p:1")])))


def test_two_readers_that_see_different_records_at_one_offset_are_noticed_at_once() -> None:
    history = History()
    history.note_read("r", Isolation.ALL, HERE, [(4, "p:0")])
    history.note_read("s", Isolation.ALL, HERE, [(4, "p:1")])

    assert history.surprises == [f"s read p:1 at 4 of {HERE}, where p:0 was read before"]


def test_a_reader_passes_over_nothing_that_it_may_see() -> None:
    held = end([(0, "t:0"), (1, "t:1"), (3, "t:2")], committed=[(0, "t:0"), (3, "t:2")])

    def jump(previous: int, offset: int, isolation: Isolation = Isolation.ALL) -> list[str]:
        return list(skipped([Jump(isolation, HERE, previous, offset)], held))

    assert jump(1, 3) == []
    assert jump(0, 3, Isolation.COMMITTED) == []
    assert "1 records from 1" in one(jump(0, 3))
    assert "backwards" in one(jump(3, 3))


@pytest.mark.parametrize(
    ("fate", "there", "is_sound"),
    [
        (Fate.COMMITTED, 2, True),
        (Fate.COMMITTED, 1, False),
        (Fate.COMMITTED, 0, False),
        (Fate.ABORTED, 0, True),
        (Fate.ABORTED, 1, False),
        (Fate.UNKNOWN, 0, True),
        (Fate.UNKNOWN, 1, False),
        (Fate.UNKNOWN, 2, True),
    ],
)
def test_transactions_stand_whole_or_not_at_all(fate: Fate, there: int, is_sound: bool) -> None:
    records = ((HERE, "t:1:0"), (THERE, "t:1:1"))
    committed: dict[Place, Log] = {HERE: [(0, "t:1:0")][:there], THERE: [(0, "t:1:1")][: there - 1] if there else []}

    assert (list(torn([Transaction("t", fate, records)], committed)) == []) is is_sound


def test_a_transaction_that_is_there_twice_is_found() -> None:
    records = ((HERE, "t:1:0"),)
    assert "2 times" in one(torn([Transaction("t", Fate.COMMITTED, records)], {HERE: [(0, "t:1:0"), (2, "t:1:0")]}))


def test_committed_offsets_never_go_back_for_who_asks_later() -> None:
    def look(offset: int, began: int, ended: int, is_commit: bool = False) -> Look:
        return Look("g", HERE, offset, began, ended, is_commit)

    commit = look(5, 1, 2, is_commit=True)
    assert list(gone_back([commit, look(5, 3, 4), look(9, 5, 6, is_commit=True), look(9, 7, 8)])) == []
    # It asked before the commit was answered.
    assert list(gone_back([look(5, 1, 4, is_commit=True), look(-1, 2, 3)])) == []
    assert "is told 4" in one(gone_back([commit, look(4, 3, 4)]))
    assert "commits 3" in one(gone_back([look(5, 1, 2), look(3, 3, 4, is_commit=True)]))
    assert "is told -1" in one(gone_back([look(-1, 5, 6), commit]))


def test_a_copy_has_everything_once_and_in_order() -> None:
    def copy(*values: str) -> list[str]:
        source: dict[Place, Log] = {("s", 0): [(0, "p:0"), (2, "p:1")]}
        target: dict[Place, Log] = {("t", 0): list(enumerate(values))}
        return list(copied_wrongly(End({}, source | target, {"t": "s"})))

    assert copy("0=p:0", "2=p:1") == []
    assert "1 records instead of 2" in one(copy("0=p:0"))
    assert "2=p:1 where 0=p:0" in one(copy("2=p:1", "0=p:0"))
    assert "3 records instead of 2" in one(copy("0=p:0", "2=p:1", "2=p:1"))


def test_a_topic_made_again_has_its_own_records_only() -> None:
    def life(*read: str) -> list[str]:
        return list(of_another_life([Life("r", 2, ((0, "r.2:0"),), tuple(enumerate(read)))]))

    assert life("r.2:0", "r.2:1") == []
    assert "has lost" in one(life())
    assert "has ['r.1:7']" in one(life("r.2:0", "r.1:7"))


def test_of_many_faults_of_a_kind_some_are_told_and_the_rest_counted() -> None:
    history = History()
    for number in range(50):
        history.note_acknowledged(told(number, number))

    found = contradictions(history, end([]))

    assert len(found) == 21
    assert found[-1] == "... and 30 more of these"
