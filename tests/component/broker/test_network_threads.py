"""A network thread with a real loop and real sockets: what it is given it serves or closes, and counts out."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from kavka.broker.network import departure, expiry
from kavka.broker.network.connection import MAX_UNANSWERED, Connection
from kavka.broker.waiting.purgatory import DelayedOperation
from tests.support.network_rig import Rig
from tests.support.network_stage import request

LISTENER, PEER = "PLAINTEXT", "127.0.0.1"


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.thread.start()
    yield rig
    rig.thread.stop()
    assert not rig.deaths


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_what_a_client_sends_is_queued_and_its_going_is_counted(rig: Rig) -> None:
    client = rig.adopt()
    client.sendall(request(1) + request(2)[:-3])
    rig.wait_for(lambda: rig.queue.qsize() == 1)
    connection = rig.queue.get()
    assert connection is not None
    assert (len(connection.pending), connection.peer_host) == (1, PEER)

    connection.pending.clear()
    connection.running.release()
    client.close()

    rig.wait_for(lambda: rig.limits.total == 0)
    rig.wait_for(lambda: connection.closed and not rig.thread.connections)


def test_who_stops_its_reading_waits_for_what_it_runs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def run_slowly(connection: Connection, _received_ns: int, _cells: object) -> None:
        begun.set()
        ended.append(may_end.wait(60))
        connection.running.release()

    monkeypatch.setattr(rig.thread, "_run_inline", run_slowly)
    client = rig.adopt()
    client.sendall(request(1))
    assert begun.wait(60)
    stopper = threading.Thread(target=lambda: rig.thread.call_and_wait(rig.thread.stop_reading))
    stopper.start()
    stopper.join(0.3)
    assert stopper.is_alive()
    may_end.set()
    stopper.join(60)
    assert ended == [True]
    assert not stopper.is_alive()
    client.close()


def test_nobody_waits_for_a_thread_that_has_ended(rig: Rig) -> None:
    rig.thread.stop()
    rig.thread.call_and_wait(rig.thread.stop_reading)
    assert not rig.thread.is_alive


def test_a_frame_beyond_the_limit_is_rejected(rig: Rig) -> None:
    client = rig.adopt()
    client.sendall((1001).to_bytes(4, "big"))

    assert is_closed(client)
    assert len(rig.rejected) == 1


def test_a_client_that_reset_before_it_was_taken_is_counted_out(rig: Rig) -> None:
    client = rig.adopt()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()

    rig.wait_for(lambda: rig.limits.total == 0)


def test_connections_given_to_a_thread_that_stops_are_closed_and_counted_out() -> None:
    rig = Rig()
    waiting = [rig.adopt() for _ in range(3)]
    rig.thread.start()
    rig.thread.stop()
    late = rig.adopt()

    assert all(is_closed(client) for client in (*waiting, late))
    assert rig.limits.total == 0


def held(rig: Rig) -> tuple[socket.socket, Connection]:
    """A client, and its connection with a request that somebody runs."""
    client = rig.adopt()
    client.sendall(request(1))
    connection = rig.queue.get()
    assert connection is not None
    connection.pending.clear()
    return client, connection


def test_a_thread_that_retires_closes_connections_with_their_answers_and_ends(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure, "LONGEST_NS", 60_000_000_000)
    quiet = rig.adopt()
    asking, connection = held(rig)

    rig.thread.retire()

    assert is_closed(quiet)
    assert is_closed(rig.adopt())
    assert rig.thread.is_alive
    connection.write([b"answer"])
    connection.running.release()
    assert asking.recv(100) == b"answer"
    assert is_closed(asking)
    rig.wait_for(lambda: not rig.thread.is_alive)
    assert rig.limits.total == 0


def test_a_thread_that_retires_does_not_wait_for_ever(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departure, "LONGEST_NS", 0)
    asking, _ = held(rig)

    rig.thread.retire()

    assert is_closed(asking)
    rig.wait_for(lambda: not rig.thread.is_alive)


@pytest.mark.parametrize("way", ["retire", "stop"])
def test_a_connection_that_cannot_be_closed_keeps_neither_the_others_nor_the_thread(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    clients = [rig.adopt() for _ in range(3)]
    rig.wait_for(lambda: len(rig.thread.connections) == 3)
    first = next(iter(rig.thread.connections.values()))

    close_socket = Connection.close_socket

    def fail_once(connection: Connection) -> None:
        if connection is first:
            raise ValueError("broken")
        close_socket(connection)

    monkeypatch.setattr(Connection, "close_socket", fail_once)
    threading.Thread(target=getattr(rig.thread, way), daemon=True).start()

    rig.wait_for(lambda: not rig.thread.is_alive)
    assert all(is_closed(client) for client in clients[1:])
    assert [record.getMessage().split()[0] for record in caplog.records] == ["closing"]


def test_a_listener_that_moved_keeps_who_came_to_its_new_address(rig: Rig) -> None:
    clients = [rig.adopt() for _ in range(2)]
    rig.wait_for(lambda: len(rig.thread.connections) == 2)

    rig.thread.call(rig.thread.close_listener, LISTENER, *clients[0].getpeername())

    assert is_closed(clients[0])
    rig.wait_for(lambda: len(rig.thread.connections) == 1)
    clients[1].sendall(request(1))
    assert rig.queue.get() is not None


def test_idle_connections_close_and_busy_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    now_ns = 0

    def monotonic_ns() -> int:
        looks.append(now_ns)
        return now_ns

    # Those who look for idle ones have a clock of their own: nobody is idle because this test had to wait.
    monkeypatch.setattr(expiry, "time", SimpleNamespace(monotonic_ns=monotonic_ns))
    rig = Rig(max_idle_ms=200)
    rig.thread.start()
    idle, busy = rig.adopt(), rig.adopt()
    rig.wait_for(lambda: len(rig.thread.connections) == 2)
    served = {connection.peer_port: connection for connection in rig.thread.connections.values()}
    last_ns = served[idle.getsockname()[1]].last_active_ns
    connection = served[busy.getsockname()[1]]

    def is_later() -> bool:
        busy.sendall(b"\0")
        return connection.last_active_ns > last_ns

    rig.wait_for(is_later)
    assert rig.limits.total == 2
    now_ns = last_ns + 200_000_001

    assert is_closed(idle)
    seen = len(looks)
    rig.wait_for(lambda: len(looks) > seen + 1)
    assert rig.limits.total == 1
    rig.thread.stop()
    assert rig.limits.total == 0


def test_a_client_that_is_reset_while_it_is_not_read_is_found_gone(rig: Rig) -> None:
    client, connection = paused(rig)
    waiting = wait_for_others(connection)

    leave(client, "reset")

    assert waiting.hurried.wait(60)
    run_out(rig, connection)
    rig.wait_for(lambda: rig.limits.total == 0)
    assert connection.closed
    assert waiting.ended


@pytest.mark.parametrize("data", [request(1)[:3], request(1), request(1) + request(2)[:-1]])
def test_a_reset_that_comes_together_with_data_is_noticed(rig: Rig, data: bytes) -> None:
    client = rig.adopt()
    rig.wait_for(lambda: len(rig.thread.connections) == 1)

    with standing_still(rig):
        client.sendall(data)
        leave(client, "reset")

    if len(data) > 3:
        connection = rig.queue.get()
        assert connection is not None
        assert len(connection.pending) == 1
        run_out(rig, connection)
    rig.wait_for(lambda: rig.limits.total == 0)


def test_what_waits_for_a_client_that_ends_its_sending_is_told(rig: Rig) -> None:
    client, connection = paused(rig)
    waiting = wait_for_others(connection)

    client.shutdown(socket.SHUT_WR)

    assert waiting.hurried.wait(60)
    assert connection.half_closed


def test_what_was_read_before_a_reset_is_not_dropped(rig: Rig) -> None:
    client, connection = paused(rig)

    leave(client, "reset")

    rig.wait_for(lambda: connection.is_reset)
    assert len(connection.pending) == MAX_UNANSWERED
    run_out(rig, connection)
    rig.wait_for(lambda: rig.limits.total == 0)


def test_what_a_client_sent_before_it_ended_is_not_dropped_because_reading_paused(rig: Rig) -> None:
    client, connection = paused(rig)

    leave(client, "close")

    rig.wait_for(lambda: connection.half_closed)
    turn_once(rig)
    assert not connection.closed
    assert len(connection.pending) == MAX_UNANSWERED


def test_a_connection_whose_client_stays_is_left_alone(rig: Rig) -> None:
    _client, connection = paused(rig)
    waiting = wait_for_others(connection)

    turn_once(rig)

    assert not connection.closed
    assert not waiting.hurried.is_set()


def run_out(rig: Rig, connection: Connection) -> None:
    """Do as the I/O thread that has run all that a connection brought."""
    connection.drop_pending()
    connection.running.release()
    rig.thread.call(rig.thread.resume, connection)


@contextmanager
def standing_still(rig: Rig) -> Iterator[None]:
    """Meanwhile the thread sees nothing; then all at once."""
    stands, goes_on = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        goes_on.wait(60)

    rig.thread.call(stand)
    assert stands.wait(60)
    try:
        yield
    finally:
        goes_on.set()


def turn_once(rig: Rig) -> None:
    """Let the thread do what there is to do."""
    for _ in range(2):
        turned = threading.Event()
        rig.thread.call(turned.set)
        assert turned.wait(60)


def paused(rig: Rig) -> tuple[socket.socket, Connection]:
    """A connection with as many requests as it may have, which nobody runs."""
    client = rig.adopt()
    client.sendall(b"".join([request(number) for number in range(MAX_UNANSWERED)]))
    rig.wait_for(lambda: any(not each.reading for each in list(rig.thread.connections.values())))
    (connection,) = rig.thread.connections.values()
    return client, connection


class Wait(DelayedOperation):
    waits_for_client = True

    def __init__(self) -> None:
        super().__init__()
        self.hurried = threading.Event()

    def expire_soon(self) -> None:
        self.hurried.set()

    def is_satisfied(self) -> bool:
        return False

    def respond(self) -> None:
        raise AssertionError("nothing has come")


def wait_for_others(connection: Connection) -> Wait:
    """Let one of its requests wait."""
    waiting = Wait()
    connection.parked[waiting] = None
    return waiting


def leave(client: socket.socket, how: str) -> None:
    if how == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


def test_the_time_that_it_works_is_counted(rig: Rig) -> None:
    with rig.adopt() as client:
        client.sendall(request(1))
        rig.wait_for(lambda: rig.metrics.busy("network")[1] > 0)

    assert rig.metrics.busy("network")[0] == 1
