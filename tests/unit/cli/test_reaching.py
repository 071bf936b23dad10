"""A command gives up soon where nobody listens, and waits for a broker that is about to."""

import socket
from collections.abc import Iterator

import pytest

from kavka.cli import reaching
from kavka.cli.failing import Failure
from kavka.cli.reaching import await_broker


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.listener: socket.socket | None = None
        """Listens from the first sleep on."""

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.listener is not None:
            self.listener.listen()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reaching, "time", clock)
    return clock


@pytest.fixture
def reserved() -> Iterator[socket.socket]:
    """A port at which nobody listens yet."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield found


def _settings(*sockets: socket.socket) -> dict[str, str]:
    return {"bootstrap.servers": ", ".join(f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)}


@pytest.mark.parametrize(("timeout_ms", "waited_s"), [(None, 3), (200, 0.2), (60_000, 60)])
def test_nobody_listens(clock: Clock, reserved: socket.socket, timeout_ms: int | None, waited_s: float) -> None:
    with pytest.raises(Failure, match=rf"127.0.0.1:{reserved.getsockname()[1]}: Connection refused; ") as failed:
        await_broker(_settings(reserved), timeout_ms)
    assert failed.value.exit_code == 3
    assert clock.now_s == pytest.approx(waited_s)


def test_a_broker_that_starts_is_waited_for(clock: Clock, reserved: socket.socket) -> None:
    clock.listener = reserved
    await_broker(_settings(reserved), None)
    assert 0 < clock.now_s < 1


def test_one_broker_of_several_will_do(clock: Clock, reserved: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await_broker(_settings(reserved, listening), None)
    assert clock.now_s == 0
