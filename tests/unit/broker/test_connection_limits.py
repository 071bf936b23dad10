"""Connections are counted in and out: in all, by address, and new ones by the second."""

import threading

import pytest

from kavka.broker.metrics.registry import Metrics
from kavka.broker.network.limits import Arrivals, ConnectionLimits, ConnectionSettings, ListenerLimits, arrivals_of
from kavka.broker.quotas import connections
from kavka.broker.quotas.connections import AddressRates
from tests.support.gate import Gate
from tests.support.processes import wait_until

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


def test_there_are_as_many_as_allowed_and_then_one_when_another_has_gone() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=2))
    assert [admit(limits, "A", HERE) for _ in range(3)] == [True, True, False]

    limits.released("A", HERE)

    assert admit(limits, "A", HERE)


def test_a_listener_that_is_full_waits_and_others_are_not_affected() -> None:
    settings = ConnectionSettings(max_connections=4, by_listener={"A": ListenerLimits(max_connections=1)})
    limits = ConnectionLimits(settings)
    admit(limits, "A", HERE)

    assert not limits.take_place("A")
    assert limits.take_place("B")
    limits.released("A", HERE)
    assert limits.take_place("A")


def test_the_listener_between_brokers_has_no_part_in_the_brokers_limit() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=2, protected_listener="BROKERS"))
    assert [limits.take_place(name) for name in ("A", "A", "A")] == [True, True, False]
    assert limits.excess == 0

    assert limits.take_place("BROKERS")

    assert limits.excess == 1
    assert not limits.take_place("A")


def test_the_listener_between_brokers_has_its_own_limit_though() -> None:
    own = {"BROKERS": ListenerLimits(max_connections=1)}
    limits = ConnectionLimits(ConnectionSettings(protected_listener="BROKERS", by_listener=own))

    assert [limits.take_place("BROKERS") for _ in range(2)] == [True, False]


def test_a_raised_limit_holds_at_once() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=0))
    assert not admit(limits, "A", HERE)

    limits.settings = ConnectionSettings(max_per_ip=1)

    assert admit(limits, "A", HERE)


def arrivals(limits: ConnectionLimits, clock: Clock, listener: str, count: int) -> list[float]:
    """How long each of so many connections waits, one behind the other."""
    waits = []
    for _ in range(count):
        waits.append(limits.arrive(listener))
        clock.s += waits[-1]
    return waits


def test_what_the_window_has_room_for_comes_at_once_and_then_no_faster_than_the_rate() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=10), clock)
    clock.s += 3600

    # As in Kafka: ten windows of the eleven are behind it, with nothing in them.
    assert arrivals(limits, clock, "A", 100) == [0.0] * 100
    began_s = clock.s
    arrivals(limits, clock, "A", 50)
    assert 4 < clock.s - began_s < 15


def test_nobody_waits_longer_than_a_window() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=1, window_num=3, window_size_s=2), clock)

    assert max(limits.arrive("A") for _ in range(1000)) == 2


def test_a_listener_has_a_rate_of_its_own_beside_the_brokers() -> None:
    clock = Clock()
    settings = ConnectionSettings(max_creation_rate=10, by_listener={"A": ListenerLimits(max_creation_rate=3)})
    limits = ConnectionLimits(settings, clock)

    assert sum(not limits.arrive("A") for _ in range(40)) == 30
    assert sum(not limits.arrive("B") for _ in range(100)) == 60


def test_the_brokers_rate_is_not_that_of_the_listener_between_brokers() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=1, protected_listener="BROKERS"), Clock())

    assert not any(limits.arrive("BROKERS") for _ in range(100))
    assert sum(not limits.arrive("A") for _ in range(100)) == 10


def test_a_rate_of_nothing_has_everybody_wait() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=0), Clock())

    assert limits.arrive("A") == 1


def test_a_rate_that_is_set_later_knows_nothing_of_those_before_it() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(), clock)
    assert not any(limits.arrive("A") for _ in range(1000))

    limits.settings = ConnectionSettings(max_creation_rate=10)

    assert sum(not limits.arrive("A") for _ in range(150)) == 100


def test_an_address_that_opens_too_many_is_told_apart_and_costs_nobody_his_place() -> None:
    clock = Clock()
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=20), clock)
    rates = AddressRates(11, 1000, lambda: int(clock.s * 1000))
    limits.follow(rates)
    rates.apply(HERE, {"connection_creation_rate": "1"})

    def come(ip: str) -> int:
        assert limits.take_place("A")
        assert not limits.arrive("A")
        return limits.throttle_ms("A", ip)

    assert [come(HERE) for _ in range(12)] == [0] * 10 + [1000] * 2
    assert limits.total == 10
    # What was refused does not count for the broker's rate either.
    assert [come(THERE) for _ in range(190)] == [0] * 190


def test_a_hosts_rate_counts_once_its_name_is_looked_up_and_nobody_waits_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    looked_up: list[str] = []

    def address_of(host: str) -> str:
        looked_up.append(host)
        gate.pass_through()
        return HERE

    monkeypatch.setattr(connections, "address_of", address_of)
    rates = AddressRates(11, 1000, lambda: 100_000)
    with gate.held():
        rates.apply("a.host", {"connection_creation_rate": "1"})
        rates.apply("a.host", {"connection_creation_rate": "2"})
        assert [rates.throttle_ms(HERE) for _ in range(30)] == [0] * 30
    wait_until(lambda: rates._hosts == {"a.host": HERE}, 60, "the name is not looked up")
    assert looked_up == ["a.host"]
    assert [rates.throttle_ms(HERE) for _ in range(22)] == [0] * 20 + [500] * 2
    rates.apply("a.host", {})
    assert rates.throttle_ms(HERE) == 0


def test_the_last_place_goes_to_one_of_the_listeners_that_saw_it() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=1, max_per_ip=0))
    assert limits.take_place("A")
    assert not limits.take_place("B")
    limits.give_place_back("A")
    assert limits.take_place("B")
    assert not limits.admit("B", HERE)
    assert limits.take_place("A")
    assert (limits.total, limits.by_listener()) == (1, {"A": 1, "B": 0})


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


def shown(metrics: Metrics) -> dict[str, float]:
    """Each metric's readings, as `name{label=value}`, without what comes before each."""
    found = {}
    for gauge in metrics.gauges():
        for labels, value in gauge.read():
            name = gauge.name.removeprefix("kafka_server_socket_server_metrics_")
            found[name + "".join(f"{{{label}={text}}}" for label, text in labels.items())] = value
    return found


def test_connections_a_second_are_shown_for_the_broker_its_listeners_and_limited_addresses() -> None:
    clock, metrics = Clock(), Metrics()
    Arrivals(clock).register(metrics)
    clock.s = 1000.5
    assert shown(metrics) == {"broker_connection_accept_rate": 0.0}

    metrics = Metrics()
    arrivals = Arrivals(clock)
    arrivals.register(metrics)
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=1_000), clock, arrivals)
    addresses = AddressRates(11, 1000, lambda: int(clock.s * 1000))
    addresses.apply(HERE, {"connection_creation_rate": "1000"})
    limits.follow(addresses)
    other_plane = ConnectionLimits(ConnectionSettings(), clock, arrivals)
    for _ in range(21):
        limits.throttle_ms("A", HERE)
        admit(limits, "A", HERE)
    admit(other_plane, "B", THERE)

    rates = shown(metrics)
    assert rates["connection_accept_rate{listener=A}"] == 2.0
    assert rates["broker_connection_accept_rate"] == pytest.approx(22 / 10.5)
    assert rates[f"connection_accept_rate{{ip={HERE}}}"] == pytest.approx(2.1, rel=0.05)
    clock.s += 11
    assert shown(metrics)["connection_accept_rate{listener=A}"] == 0.0


def test_what_connections_waited_for_their_rates_is_shown_on_average_of_those_that_had_to() -> None:
    clock, metrics = Clock(), Metrics()
    arrivals = Arrivals(clock)
    arrivals.register(metrics)
    settings = ConnectionSettings(by_listener={"A": ListenerLimits(max_creation_rate=1)})
    limits = ConnectionLimits(settings, clock, arrivals)
    waits_s = [wait_s for _ in range(30) if (wait_s := limits.arrive("A"))]
    addresses = AddressRates(11, 1000, lambda: int(clock.s * 1000))
    addresses.apply(HERE, {"connection_creation_rate": "1"})
    limits.follow(addresses)
    limits.take_place("A")
    delays_ms = [delay_ms for _ in range(30) if (delay_ms := addresses.throttle_ms(HERE))]
    limits.throttle_ms("A", HERE)

    assert waits_s
    assert delays_ms
    expected = 1000 * sum(waits_s) / len(waits_s)
    assert shown(metrics)["connection_accept_throttle_time{listener=A}"] == pytest.approx(expected)
    assert shown(metrics)["ip_connection_accept_throttle_time{listener=A}"] > 0
    assert "connection_accept_throttle_time{listener=B}" not in shown(metrics)


def test_the_planes_of_a_broker_count_together_and_are_shown_once() -> None:
    metrics = Metrics()

    assert arrivals_of(metrics) is arrivals_of(metrics)
    assert len({gauge.name for gauge in metrics.gauges()}) == len(metrics.gauges()) == 4
