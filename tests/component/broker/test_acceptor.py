"""Listening: who gets in, on which addresses, and what happens without file descriptors."""

import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from kavka.broker.network.acceptor import Acceptor
from kavka.broker.network.limits import ConnectionLimits, ConnectionSettings
from kavka.broker.quotas.connections import AddressRates
from tests.support.processes import wait_until


class Taker:
    """Stands for a network thread: keeps what it is given."""

    def __init__(self) -> None:
        self.adopted: list[tuple[socket.socket, str, str]] = []
        self.settings: Any = type("Settings", (), {"send_buffer_bytes": 50_000, "receive_buffer_bytes": -1})

    def adopt(self, client: socket.socket, peer_host: str, listener_name: str) -> None:
        self.adopted.append((client, peer_host, listener_name))


class Listening:
    def __init__(
        self,
        host: str,
        settings: ConnectionSettings | None = None,
        takers: int = 1,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.takers = [Taker() for _ in range(takers)]
        self.limits = limits or ConnectionLimits(settings or ConnectionSettings())
        self.refused: list[tuple[str, str]] = []
        self.deaths: list[BaseException] = []
        threads: Any = self.takers
        self.acceptor = Acceptor(
            "PLAIN",
            host,
            0,
            backlog=10,
            limits=self.limits,
            network_threads=lambda: threads,
            on_refused=lambda peer, why: self.refused.append((peer, why)),
            on_death=self.deaths.append,
        )
        self.acceptor.start()

    def connect(self, host: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection((host, self.acceptor.port), 60)

    @property
    def adopted(self) -> list[tuple[socket.socket, str, str]]:
        return [each for taker in self.takers for each in taker.adopted]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, 60, "the acceptor does nothing")


@contextmanager
def listening(
    host: str = "127.0.0.1",
    settings: ConnectionSettings | None = None,
    takers: int = 1,
    limits: ConnectionLimits | None = None,
) -> Iterator[Listening]:
    made = Listening(host, settings, takers, limits)
    try:
        yield made
    finally:
        made.acceptor.stop()
        for client, _, _ in made.adopted:
            client.close()
    assert not made.deaths


def is_closed_by_peer(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_connections_are_dealt_in_turn_and_ready_for_use() -> None:
    with listening(takers=2) as listener:
        clients = [listener.connect() for _ in range(4)]
        listener.wait_for(lambda: len(listener.adopted) == 4)

        assert [len(taker.adopted) for taker in listener.takers] == [2, 2]
        adopted, peer, name = listener.adopted[0]
        assert (peer, name, adopted.getblocking()) == ("127.0.0.1", "PLAIN", False)
        assert adopted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert adopted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert adopted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 50_000
        for client in clients:
            client.close()


def congestion_control(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_what_is_sent_to_a_client_on_this_machine_is_not_paced(host: str) -> None:
    with listening(host) as listener, closing(listener.connect()):
        listener.wait_for(lambda: len(listener.adopted) == 1)

        assert congestion_control(listener.adopted[0][0]) == b"reno"


def test_clients_at_another_address_get_the_system_s_congestion_control() -> None:
    with listening() as listener, closing(socket.socket()) as client:
        client.bind(("127.0.0.2", 0))
        client.connect(("127.0.0.1", listener.acceptor.port))
        listener.wait_for(lambda: len(listener.adopted) == 1)

        assert congestion_control(listener.adopted[0][0]) == congestion_control(client)


def test_one_too_many_from_an_address_is_closed() -> None:
    with listening(settings=ConnectionSettings(max_per_ip=1)) as listener, closing(listener.connect()):
        listener.wait_for(lambda: len(listener.adopted) == 1)
        with closing(listener.connect()) as second:
            assert is_closed_by_peer(second)
        listener.wait_for(lambda: [peer for peer, _ in listener.refused] == ["127.0.0.1"])


def test_beyond_all_connections_clients_wait_for_one_to_go() -> None:
    settings = ConnectionSettings(max_connections=1)
    with listening(settings=settings) as listener, closing(listener.connect()), closing(listener.connect()):
        listener.wait_for(lambda: len(listener.adopted) == 1)
        assert not listener.refused
        listener.limits.released("PLAIN", "127.0.0.1")
        listener.wait_for(lambda: len(listener.adopted) == 2)


def test_every_address_means_both_families() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has one family only")
    with listening("") as listener, closing(listener.connect("127.0.0.1")), closing(listener.connect("::1")):
        listener.wait_for(lambda: len(listener.adopted) == 2)
        assert sorted(peer for _, peer, _ in listener.adopted) == ["127.0.0.1", "::1"]


def test_a_taken_port_is_told_with_its_listener() -> None:
    with listening() as first, pytest.raises(OSError, match=str(first.acceptor.port)):
        Acceptor(
            "SECOND",
            "127.0.0.1",
            first.acceptor.port,
            backlog=1,
            limits=first.limits,
            network_threads=list,
            on_refused=lambda peer, why: None,
            on_death=first.deaths.append,
        ).start()


def test_stopping_gives_the_port_back_and_can_come_before_the_start() -> None:
    with listening() as listener:
        port = listener.acceptor.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)


OUT_OF_DESCRIPTORS = """
    import os, resource, socket, time
    from tests.component.broker.test_acceptor import Listening, is_closed_by_peer
    from tests.support.processes import wait_until

    listener = Listening("127.0.0.1")
    clients = [socket.socket() for _ in range(3)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for client in clients[:2]:
        client.settimeout(60)
        client.connect(("127.0.0.1", listener.acceptor.port))
        assert is_closed_by_peer(client)
    for each in taken:
        os.close(each)
    clients[2].connect(("127.0.0.1", listener.acceptor.port))
    wait_until(lambda: len(listener.adopted) == 1, 60, "not accepted again")
    assert [why for _, why in listener.refused] == ["out of file descriptors"] * 2, listener.refused
    assert not listener.deaths
    listener.acceptor.stop()
    print("good")
"""


RATE_WITHOUT_DESCRIPTORS = """
    import os, resource, socket, sys
    from kavka.broker.network.limits import connection_settings
    from kavka.config.broker_config import BrokerConfig
    from tests.component.broker.test_acceptor import Listening, is_closed_by_peer

    for name in [each for each in sys.modules if each.startswith("kavka.broker.quotas")]:
        del sys.modules[name]
    listener = Listening("127.0.0.1")
    client = socket.socket()
    listener.limits.settings = connection_settings(BrokerConfig({"max.connection.creation.rate": "100"}), {})
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        pass
    client.settimeout(60)
    client.connect(("127.0.0.1", listener.acceptor.port))
    assert is_closed_by_peer(client)
    assert not listener.deaths, listener.deaths
    listener.acceptor.stop()
    print("good")
"""


MANY_DESCRIPTORS = """
    import os, resource, socket
    from kavka.broker.network.limits import ConnectionSettings
    from tests.component.broker.test_acceptor import Listening
    from tests.support.processes import wait_until

    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    listener = Listening("127.0.0.1", ConnectionSettings(max_connections=0))
    client = listener.connect()
    listener.limits.settings = ConnectionSettings()
    wait_until(lambda: len(listener.adopted) == 1, 60, "not accepted")
    listener.acceptor.stop()
    assert not listener.deaths
    print("good")
"""


def run_alone(program: str) -> None:
    """Run it in a process of its own, whose limits it may change."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=200, check=False
    )
    assert (run.returncode, run.stdout.strip()) == (0, "good"), run.stderr


def test_a_listener_added_late_has_high_descriptors() -> None:
    run_alone(MANY_DESCRIPTORS)


def test_without_descriptors_clients_are_told_and_it_goes_on_when_there_are_some() -> None:
    run_alone(OUT_OF_DESCRIPTORS)


def test_a_rate_that_is_limited_while_there_are_no_descriptors_does_not_end_the_thread() -> None:
    run_alone(RATE_WITHOUT_DESCRIPTORS)


def test_who_came_too_often_is_closed_at_once_where_nothing_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = AddressRates(samples=11, sample_ms=1000, now_ms=lambda: 0)
    rates.apply("127.0.0.1", {"connection_creation_rate": "0"})
    monkeypatch.setitem(sys.modules, "kavka.broker.network.delayed_closes", None)
    with listening() as made:
        made.limits.follow(rates)
        with closing(made.connect()) as client:
            assert is_closed_by_peer(client)
    assert made.limits.total == 0


def test_a_limit_that_is_lowered_holds_for_the_very_next_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(settings=ConnectionSettings(max_connections=2)) as made, closing(made.connect()):
        made.wait_for(lambda: len(made.adopted) == 1)
        taken: list[bool] = []
        take_place = made.limits.take_place

        def noted(listener_name: str) -> bool:
            taken.append(take_place(listener_name))
            return taken[-1]

        monkeypatch.setattr(made.limits, "take_place", noted)
        made.limits.settings = ConnectionSettings(max_connections=1)
        with closing(made.connect()):
            made.wait_for(lambda: bool(taken))
            assert len(made.adopted) == 1
            made.limits.released("PLAIN", "127.0.0.1")
            made.wait_for(lambda: len(made.adopted) == 2)


class SlowLimits(ConnectionLimits):
    """Whoever is let in first is counted only when the other listener has been let in, too, or told to wait."""

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings)
        self.comers: list[str] = []
        self.other_knows = threading.Event()

    def take_place(self, listener_name: str) -> bool:
        has_place = super().take_place(listener_name)
        if not has_place:
            self.other_knows.set()
        return has_place

    def admit(self, listener_name: str, ip: str) -> bool:
        self.comers.append(ip)
        if len(self.comers) > 1:
            self.other_knows.set()
        assert self.other_knows.wait(60)
        return super().admit(listener_name, ip)


def test_listeners_that_see_the_last_place_at_once_do_not_both_fill_it() -> None:
    limits = SlowLimits(ConnectionSettings(max_connections=1))
    with ExitStack() as open_:
        first, second = [open_.enter_context(listening(limits=limits)) for _ in range(2)]
        for listener in (first, second):
            open_.enter_context(closing(listener.connect()))
        first.wait_for(lambda: bool(first.adopted or second.adopted))
        assert (limits.total, len(limits.comers)) == (1, 1)
        limits.released("PLAIN", "127.0.0.1")
        first.wait_for(lambda: len(first.adopted) == len(second.adopted) == 1)
        assert limits.total == 1


def test_a_listener_waits_for_its_rate_and_then_takes_who_has_waited() -> None:
    settings = ConnectionSettings(max_creation_rate=20, window_num=2)
    with listening(settings=settings) as made, ExitStack() as open_:
        began_s = time.monotonic()
        for _ in range(30):
            open_.enter_context(closing(made.connect()))
        made.wait_for(lambda: len(made.adopted) == 30)

        # A window has room for twenty; the others wait, each for what it is too much.
        assert time.monotonic() - began_s > 0.4


def test_an_address_that_opens_too_many_has_them_closed_after_a_while() -> None:
    with listening() as made, ExitStack() as open_:
        # All of them come at one moment, however long it takes them.
        rates = AddressRates(2, 1000, lambda: 0)
        rates.apply("127.0.0.1", {"connection_creation_rate": "1"})
        made.limits.follow(rates)
        began_s = time.monotonic()
        clients = [open_.enter_context(closing(made.connect())) for _ in range(3)]

        assert all(is_closed_by_peer(client) for client in clients[1:])
        assert time.monotonic() - began_s > 0.5
        assert [name for _, _, name in made.adopted] == ["PLAIN"]
        assert made.limits.total == 1


def test_a_stop_does_not_wait_for_delayed_closes() -> None:
    with ExitStack() as open_:
        with listening() as made:
            rates = AddressRates(3600, 3_600_000, lambda: 0)
            rates.apply("127.0.0.1", {"connection_creation_rate": "0"})
            made.limits.follow(rates)
            clients = [open_.enter_context(closing(made.connect())) for _ in range(3)]
            made.wait_for(lambda: rates.readings() == [("127.0.0.1", 0.0)] and made.limits.total == 0)

        assert all(is_closed_by_peer(client) for client in clients)
