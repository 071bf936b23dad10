"""Several coordinators' answers become one."""

import itertools

from kavka.broker.waiting.gathering import Gathering


def test_values_come_in_any_order_and_are_given_in_their_own_once() -> None:
    for order in itertools.permutations(range(3)):
        done: list[list[int]] = []
        gathering = Gathering[int](3, done.append)

        for index in order:
            assert done == []
            gathering.put(index, index * 10)
        gathering.put(0, 99)

        assert done == [[0, 10, 20]]


def test_a_second_value_for_a_place_does_not_count() -> None:
    done: list[list[int]] = []
    gathering = Gathering[int](2, done.append)

    gathering.put(0, 1)
    gathering.put(0, 2)
    assert done == []
    gathering.put(1, 3)

    assert done == [[1, 3]]


def test_a_gathering_of_nothing_is_complete_at_once() -> None:
    done: list[list[int]] = []

    Gathering[int](0, done.append)

    assert done == [[]]
