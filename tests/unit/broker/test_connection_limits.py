"""Connections are counted in and out: in all, by address, and new ones by the second."""

import threading

import pytest

from kavka.broker.network.limits import ConnectionLimits, ConnectionSettings, ListenerLimits

HERE, THERE = "10.0.0.1", "10.0.0.2"


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def admit(limits: ConnectionLimits, listener: str, ip: str) -> bool:
    return limits.take_place(listener) and limits.admit(listener, ip)


def test_an_address_may_have_so_many_and_others_are_not_affected() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=2))

    assert [admit(limits, "A", HERE) for _ in range(3)] == [True, True, False]
    assert admit(limits, "A", THERE)
    limits.released("A", HERE)
    assert [admit(limits, "B", HERE) for _ in range(2)] == [True, False]
    assert (limits.total, limits.by_listener()) == (3, {"A": 2, "B": 1})


@pytest.mark.parametrize(("override", "admitted"), [(0, 0), (1, 1), (5, 5)])
def test_an_override_stands_for_its_address(override: int, admitted: int) -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=2, per_ip_overrides={HERE: override}))

    assert sum(admit(limits, "A", HERE) for _ in range(10)) == admitted
    assert sum(admit(limits, "A", THERE) for _ in range(10)) == 2


def test_acceptors_wait_while_there_are_as_many_as_allowed() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=2))
    for _ in range(2):
        assert limits.wait_s("A") == 0
        admit(limits, "A", HERE)

    assert limits.wait_s("A") > 0
    limits.released("A", HERE)
    assert limits.wait_s("A") == 0


def test_a_listener_that_is_full_waits_and_others_are_not_affected() -> None:
    settings = ConnectionSettings(max_connections=4, by_listener={"A": ListenerLimits(max_connections=1)})
    limits = ConnectionLimits(settings)
    admit(limits, "A", HERE)

    assert limits.wait_s("A") > 0
    assert limits.wait_s("B") == 0
    limits.released("A", HERE)
    assert limits.wait_s("A") == 0


def test_a_listener_has_a_rate_of_its_own_beside_the_brokers() -> None:
    clock = Clock()
    settings = ConnectionSettings(max_creation_rate=10, by_listener={"A": ListenerLimits(max_creation_rate=3)})
    limits = ConnectionLimits(settings, clock)
    clock.s += 3600

    assert sum(limits.take_place("A") for _ in range(100)) == 3
    assert sum(limits.take_place("B") for _ in range(100)) == 7
    assert limits.wait_s("A") > 0


def test_a_raised_limit_holds_at_once() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=0))
    assert not admit(limits, "A", HERE)

    limits.settings = ConnectionSettings(max_per_ip=1)

    assert admit(limits, "A", HERE)


def test_new_connections_come_no_faster_than_the_rate() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=10), clock)
    admitted = 0
    for _ in range(3000):
        clock.s += 0.001
        admitted += limits.take_place("A")

    assert 29 <= admitted <= 31


def test_after_a_pause_at_most_one_seconds_worth_comes_at_once() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=10), clock)
    clock.s += 3600

    assert sum(limits.take_place("A") for _ in range(100)) == 10


def test_the_wait_is_as_long_as_the_next_token_takes() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=4), clock)
    assert not limits.take_place("A")
    wait_s = limits.wait_s("A")
    assert 0 < wait_s <= 0.25

    clock.s += wait_s

    assert limits.take_place("A")


def test_a_rate_of_nothing_admits_nobody() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=0), clock)
    clock.s += 1000

    assert limits.wait_s("A") > 0
    assert not limits.take_place("A")


def test_the_last_place_goes_to_one_of_the_listeners_that_saw_it() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=1, max_per_ip=0))
    assert (limits.wait_s("A"), limits.wait_s("B")) == (0, 0)

    assert limits.take_place("A")
    assert not limits.take_place("B")
    limits.give_place_back("A")
    assert limits.take_place("B")
    assert not limits.admit("B", HERE)
    assert limits.take_place("A")
    assert (limits.total, limits.by_listener()) == (1, {"A": 1, "B": 0})


def test_the_last_token_goes_to_one_of_the_listeners_that_saw_it() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=1), clock)
    clock.s += 1
    assert (limits.wait_s("A"), limits.wait_s("B")) == (0, 0)

    assert limits.take_place("A")
    assert not limits.take_place("B")


def test_a_rate_that_is_set_later_knows_nothing_of_those_before_it() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(), clock)
    assert all(limits.take_place("A") for _ in range(100))
    limits.settings = ConnectionSettings(max_creation_rate=10)
    clock.s += 1

    assert sum(limits.take_place("A") for _ in range(100)) == 10


def test_counts_come_back_to_nothing_whatever_threads_do() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=3))
    most: list[int] = []

    def come_and_go() -> None:
        for _ in range(300):
            if admit(limits, "A", HERE):
                most.append(limits.total)
                limits.released("A", HERE)

    threads = [threading.Thread(target=come_and_go) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) <= 3
    assert (limits.total, limits._by_ip) == (0, {})
