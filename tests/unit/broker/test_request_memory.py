"""`queued.max.request.bytes`: the memory that large requests share, who waits for it, and that it always comes back."""

import pytest

from kavka.broker.network import connection as connection_module
from kavka.broker.network import network_thread
from kavka.broker.network.connection import Connection
from kavka.broker.requests.prepared import Prepared
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.network_stage import FakeSocket, Stage, answers, request

LARGE = 300_000
"""More than fits into what is received at once."""


def test_a_large_frame_waits_until_the_memory_pool_has_room() -> None:
    stage = Stage(max_bytes=int(1.5 * LARGE))
    (_, first), (waiting, second) = stage.connect(), stage.connect()
    whole = request(1, "now", pad=LARGE)
    first.input += whole[:-10]
    stage.loop.settle()
    second.input += whole
    stage.loop.settle()
    assert not waiting.reading
    assert len(second.input) >= LARGE // 2

    first.input += whole[-10:]
    stage.settle()

    assert len(answers(first.taken)) == len(answers(second.taken)) == 1
    assert stage.queue._charged_bytes == 0


def test_a_frame_larger_than_the_whole_pool_is_read_when_it_is_alone() -> None:
    stage = Stage(max_bytes=10)
    _, socket = stage.connect()
    socket.input += request(1, "now", pad=LARGE)
    stage.settle()

    assert len(answers(socket.taken)) == 1


def test_a_pool_of_zero_bytes_is_no_limit() -> None:
    stage = Stage(max_bytes=0)
    clients = [stage.connect() for _ in range(3)]
    whole = request(1, "now", pad=LARGE)
    for _, socket in clients:
        socket.input += whole[:-10]
        stage.loop.settle()

    assert all(connection.reading for connection, _ in clients)


@pytest.mark.parametrize("what", ["now", "later", "hold", "fail", "crash", "silent"])
def test_the_memory_of_a_large_request_is_given_back_once(what: str) -> None:
    stage = Stage(max_bytes=1 << 30)
    _, socket = stage.connect()
    for number in range(3):
        socket.input += request(number, what, pad=LARGE)
        stage.settle()
        if stage.promises:
            stage.promises.pop().complete(HeartbeatResponse(error_code=0))

    assert stage.queue._charged_bytes == 0
    assert len(stage.ran) == 3


@pytest.mark.parametrize("unread", [0, 10])
def test_closing_gives_back_what_waited(unread: int) -> None:
    stage = Stage(max_bytes=1 << 30)
    connection, socket = stage.connect()
    whole = request(1, pad=LARGE)
    socket.input += whole[: len(whole) - unread]
    stage.loop.settle()
    assert stage.queue._charged_bytes > 0

    connection.close("test")
    stage.settle()

    assert (stage.queue._charged_bytes, stage.thread.waiting_count, stage.limits.total) == (0, 0, 0)
    assert socket.closed


def test_a_connection_that_is_closed_does_not_wait_for_memory_any_more() -> None:
    stage = Stage(max_bytes=LARGE)
    whole = request(1, pad=LARGE)
    _, first = stage.connect()
    first.input += whole[:-10]
    stage.loop.settle()
    waiting, second = stage.connect()
    second.input += whole
    stage.loop.settle()
    assert list(stage.queue._waiting_for_memory) == [waiting]

    waiting.close("test")
    stage.settle()

    assert not stage.queue._waiting_for_memory


def behind_held(stage: Stage, *, cut: int = 0) -> tuple[Connection, FakeSocket]:
    """A client that sends a large request, but for the last `cut` bytes, behind one that waits."""
    connection, socket = stage.connect()
    whole = request(1, pad=LARGE)
    socket.input += request(0, "hold") + whole[: len(whole) - cut]
    stage.settle()
    return connection, socket


@pytest.mark.parametrize("in_one", [True, False])
def test_a_large_frame_behind_a_request_that_waits_takes_no_memory_from_others(in_one: bool) -> None:
    stage = Stage(max_bytes=int(1.5 * LARGE))
    clients = []
    for _ in range(3):
        connection, socket = stage.connect()
        socket.input += request(0, "hold")
        if not in_one:
            stage.settle()
        socket.input += request(1, pad=LARGE)
        stage.settle()
        assert not connection.reading
        clients.append((connection, socket))
    assert stage.queue._charged_bytes == 0

    _, other = stage.connect()
    other.input += request(7, pad=LARGE)
    stage.settle()
    assert answers(other.taken) == [(7, 0)]

    for connection, socket in clients:
        stage.promises.pop(0).complete(HeartbeatResponse(error_code=0))
        stage.settle()
        assert answers(socket.taken) == [(0, 0), (1, 0)]
        assert connection.reading
    assert stage.queue._charged_bytes == 0


def test_large_frames_are_read_on_behind_answers_whose_requests_are_done() -> None:
    stage = Stage(max_bytes=int(1.5 * LARGE))
    _, socket = stage.connect()
    socket.input += b"".join([request(number, "later", pad=LARGE) for number in range(4)])
    stage.settle()

    assert stage.ran == [0, 1, 2, 3]
    assert stage.queue._charged_bytes == 0


def test_without_a_limit_large_frames_are_read_ahead() -> None:
    stage = Stage()
    connection, _ = behind_held(stage)

    assert [charged for _, _, charged in connection.pending] == [0]


def test_who_takes_no_answers_keeps_no_memory_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (network_thread, connection_module):
        monkeypatch.setattr(module, "MAX_UNSENT_BYTES", 40)
    stage = Stage(max_bytes=int(1.5 * LARGE))
    _, stuck = stage.connect()
    stuck.room = 0
    stuck.input += b"".join([request(number) for number in range(4)])
    stage.settle()
    stuck.input += request(4) + request(5, pad=LARGE)
    stage.settle()
    assert stage.queue._charged_bytes == 0

    _, other = stage.connect()
    other.input += request(7, pad=LARGE)
    stage.settle()
    assert answers(other.taken) == [(7, 0)]

    stuck.room = 1 << 30
    stage.settle()
    assert [number for number, _ in answers(stuck.taken)] == list(range(6))


@pytest.mark.parametrize("cut", [0, 10])
def test_who_ends_sending_behind_a_request_that_waits_is_answered_what_is_whole_and_closed(cut: int) -> None:
    stage = Stage(max_bytes=LARGE)
    connection, socket = behind_held(stage, cut=cut)
    socket.ended = True
    stage.settle()
    assert not connection.closed

    stage.promises.pop().complete(HeartbeatResponse(error_code=0))
    stage.settle()

    assert stage.ran == ([0] if cut else [0, 1])
    assert connection.closed
    assert stage.queue._charged_bytes == 0


def test_who_is_closed_behind_a_request_that_waits_leaves_nothing() -> None:
    stage = Stage(max_bytes=LARGE)
    connection, socket = behind_held(stage)

    connection.close("test")
    stage.settle()
    stage.promises.pop().complete(HeartbeatResponse(error_code=0))
    stage.settle()

    assert socket.closed
    assert (stage.queue._charged_bytes, stage.thread.waiting_count, stage.limits.total) == (0, 0, 0)


class Learnt(Prepared):
    def __init__(self) -> None:
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


def test_who_is_closed_while_a_request_waits_leaves_neither_half_a_frame_nor_what_was_learnt() -> None:
    stage = Stage()
    connection, socket = stage.connect()
    learnt = Learnt()
    connection.session.prepare(1, learnt)
    socket.input += request(0, "later") + request(1, pad=LARGE)[:-10]
    stage.settle()
    assert connection.reader.buffer

    connection.close("test")
    stage.settle()

    assert not stage.promises[0].done
    assert learnt.forgotten == 1
    assert connection.reader.buffer is None
