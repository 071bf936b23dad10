"""What came before a client ended its sending, or sent what cannot be read, is run and answered, as in Kafka."""

import random
import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka.broker.network import answers as answers_module
from kavka.broker.network import connection, departure, network_thread, request_queue
from kavka.broker.network.hang_ups import client_reset
from kavka.broker.requests import dispatcher, request_runner
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.requests.handling import Handler
from kavka.broker.requests.prepared import Prepared
from kavka.broker.requests.request_runner import InlineRequests
from kavka.broker.requests.session import Session
from kavka.cluster import promise
from kavka.protocol import api
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.interleaving import Interleaving, TurnLock
from tests.support.network_stage import HEARTBEAT, FakeSocket, Stage, answers, request

MODULES = (answers_module, connection, departure, network_thread, request_queue, request_runner, dispatcher, promise)
BAD_SIZE = struct.pack(">i", 2**31 - 1)
BAD_HEADER = struct.pack(">iii", 8, 2**31 - 1, 0)
BAD_BODY = request(9)[:4] + request(9)[4:-12] + b"\xff" * 12
ENDS = [b"", BAD_SIZE, BAD_HEADER, BAD_BODY]
IDS = ["end", "bad size", "bad header", "bad body"]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def sent(stage: Stage, data: bytes, end: bytes, socket: FakeSocket | None = None) -> FakeSocket:
    """A client that sends all this at once, and its end or what cannot be read."""
    _, socket = stage.connect(socket)
    socket.input += data + end
    socket.ended = not end
    return socket


class Broken(Prepared):
    """Raises, though it must not."""

    __slots__ = ()

    def run(self, frame: memoryview, cells: object, may_wait: bool) -> bytes | None:
        raise ZeroDivisionError


def test_what_a_network_threads_turn_leaves_that_fails_is_not_counted_as_waiting() -> None:
    stage = Stage(new_session=lambda listener_name: Session({HEARTBEAT: Broken()}))
    stage.thread._run_inline = InlineRequests(stage.queue, stage.dispatcher, slow_ns=1 << 62).run

    socket = sent(stage, b"".join(map(request, range(3))), b"")
    stage.settle()

    assert socket.closed
    assert (stage.thread.waiting_count, stage.limits.total) == (0, 0)


def complete(stage: Stage) -> None:
    stage.promises.pop(0).complete(HeartbeatResponse(error_code=0))
    stage.settle()


@pytest.mark.parametrize("end", ENDS, ids=IDS)
def test_requests_that_wait_for_an_io_thread_are_answered(stage: Stage, end: bytes) -> None:
    socket = sent(stage, b"".join(map(request, range(30))), end)
    stage.loop.settle()
    assert not socket.closed

    stage.settle()

    assert answers(socket.taken) == [(number, 0) for number in range(30)]
    assert socket.closed
    assert len(stage.rejected) == bool(end)
    assert (stage.thread.waiting_count, stage.limits.total) == (0, 0)


@pytest.mark.parametrize("end", ENDS, ids=IDS)
@pytest.mark.parametrize("kind", ["later", "hold"])
def test_requests_that_wait_for_others_are_answered(stage: Stage, kind: str, end: bytes) -> None:
    socket = sent(stage, request(1, kind) + request(2, kind) + request(3), end)
    stage.settle()
    assert not socket.closed

    complete(stage)
    complete(stage)

    assert answers(socket.taken) == [(1, 0), (2, 0), (3, 0)]
    assert socket.closed


@pytest.mark.parametrize("end", ENDS, ids=IDS)
@pytest.mark.parametrize("piece", [10, 40])
def test_answers_that_the_socket_does_not_take_at_once_are_written(stage: Stage, end: bytes, piece: int) -> None:
    socket = sent(stage, b"".join(map(request, range(5))), end, FakeSocket(room=0))
    stage.settle()

    while not socket.closed:
        assert len(socket.taken) < 1000
        socket.room += piece
        stage.settle()

    assert answers(socket.taken) == [(number, 0) for number in range(5)]


@pytest.mark.parametrize("end", [BAD_HEADER, BAD_BODY], ids=IDS[2:])
def test_nothing_runs_behind_what_cannot_be_read(stage: Stage, end: bytes) -> None:
    socket = sent(stage, request(1, "later"), end + request(2) + request(3))
    stage.settle()

    complete(stage)

    assert (answers(socket.taken), stage.ran, socket.closed) == ([(1, 0)], [1], True)
    assert stage.thread.waiting_count == 0


def test_a_request_that_has_no_answer_but_the_end_leaves_those_before_it_theirs() -> None:
    def handle(_received: Any, context: Any, services: Any) -> Any:
        if context.correlation_id == 3:
            raise CloseConnection("no answer")
        return picky._handle(_received, context, services)

    picky = Stage(handlers={HEARTBEAT: Handler(api.spec(HEARTBEAT).request_class, (0, 4), 0, handle, None)})
    _, socket = picky.connect()
    socket.input += request(1) + request(2, "later") + request(3) + request(4)
    picky.settle()
    assert not socket.closed

    complete(picky)

    assert (answers(socket.taken), picky.ran, socket.closed) == ([(1, 0), (2, 0)], [1, 2], True)


@pytest.mark.parametrize("count", [0, 1, 30, 700])
def test_requests_that_need_no_answer_run_also_when_the_client_has_reset(stage: Stage, count: int) -> None:
    (client, socket), wanted = stage.connect(), list(range(1 + count))
    socket.input += request(0, "hold") + b"".join(request(number, "silent") for number in wanted[1:])
    stage.settle()
    complete_one = stage.promises.pop().complete
    complete_one(HeartbeatResponse(error_code=0))

    socket.reset = True
    client_reset(stage.thread, client)
    stage.settle()

    assert (stage.ran, socket.closed) == (wanted, True)
    assert (stage.thread.waiting_count, stage.limits.total) == (0, 0)


def test_a_client_that_has_reset_and_took_no_answers_before_is_gone(stage: Stage, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "MAX_UNSENT_BYTES", 1)
    client, socket = stage.connect(FakeSocket(room=0))
    socket.input += request(1)
    stage.settle()
    assert not socket.closed

    client_reset(stage.thread, client)

    assert (socket.closed, stage.limits.total) == (True, 0)


def test_an_answer_that_comes_while_it_is_looked_whether_any_is_owed_is_written(stage: Stage) -> None:
    socket = sent(stage, request(0, "later"), b"")
    connection = next(iter(stage.thread.connections.values()))
    stage.settle()

    class Meanwhile:
        """The write lock, and what another thread does as soon as it is waited for and taken."""

        def __init__(self, lock: Any) -> None:
            self.acquire, self.release, self.locked = lock.acquire, lock.release, lock.locked

        def __enter__(self) -> None:
            self.acquire()
            if stage.promises:
                stage.promises.pop().complete(HeartbeatResponse(error_code=0))

        def __exit__(self, *failure: object) -> None:
            self.release()

    connection.write_lock = cast(Any, Meanwhile(connection.write_lock))
    stage.thread.resume(connection)
    stage.settle()

    assert answers(socket.taken) == [(0, 0)]
    assert socket.closed


@pytest.mark.parametrize("writer", ["network thread", "I/O thread"])
def test_a_connection_whose_last_answer_comes_while_those_before_it_are_written_is_closed(
    stage: Stage, writer: str
) -> None:
    class EarlyAnswers(FakeSocket):
        """While it takes the first answer, another thread has the held one, and finds the lock taken."""

        def take(self, data: bytes | memoryview) -> int:
            if stage.promises:
                stage.promises.pop().complete(HeartbeatResponse(error_code=0))
            return super().take(data)

    class Contended:
        """The write lock: the network thread is next when an I/O thread lets go of it, and then the other way."""

        def __init__(self, lock: Any) -> None:
            self._lock, self._turned = lock, False
            self.acquire, self.locked = lock.acquire, lock.locked

        def release(self) -> None:
            self._lock.release()
            if not self._turned and len(stage.ran) == 2:
                self._turned = True
                stage.loop.settle()

        def __enter__(self) -> None:
            self.acquire()

        def __exit__(self, *failure: object) -> None:
            self._lock.release()
            if writer == "I/O thread" and self._turned:
                client.flush()

    socket = sent(stage, request(1) + request(2, "hold"), b"", EarlyAnswers())
    client = next(iter(stage.thread.connections.values()))
    client.write_lock = cast(Any, Contended(client.write_lock))
    stage.settle()

    assert answers(socket.taken) == [(1, 0), (2, 0)]
    assert (socket.closed, stage.limits.total) == (True, 0)


@pytest.mark.parametrize("seed", range(40))
def test_whoever_is_at_work_when_the_end_comes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rolls = random.Random(seed)
    turns = Interleaving(seed, MODULES, chance=rolls.choice([0.03, 0.1, 0.4]))
    for module in (connection, request_queue, promise):
        monkeypatch.setattr(module, "threading", SimpleNamespace(Lock=lambda: TurnLock(turns)))
    stage = Stage()
    kinds = [rolls.choice(["now", "later", "hold"]) for _ in range(6)]
    data = b"".join(request(number, kind) for number, kind in enumerate(kinds))
    socket = sent(stage, data, rolls.choice(ENDS), FakeSocket(room=0, piece=rolls.choice([3, 50, 1000])))

    def network() -> None:
        while not socket.closed:
            socket.room += rolls.randrange(60)
            stage.loop.turn()
            turns.pass_on()

    def work(index: int) -> None:
        while not socket.closed:
            stage.run_one(index)
            turns.pass_on()

    def others() -> None:
        while not socket.closed:
            if stage.promises:
                stage.promises.pop().complete(HeartbeatResponse(error_code=0))
            turns.pass_on()

    turns.run(network, lambda: work(0), others)

    assert answers(socket.taken) == [(number, 0) for number in range(6)]
    stage.settle()
    assert (stage.thread.waiting_count, stage.limits.total) == (0, 0)
