"""Answers leave whole, in request order and once, however little the socket takes; files are released once."""

import errno
import random
import socket as sockets
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.network import sending
from kavka.broker.network.addresses import java_address, plain_address
from kavka.broker.network.connection import MAX_UNSENT_BYTES, Connection
from kavka.broker.network.sending import IOV_MAX
from kavka.broker.requests.handling import Context
from tests.support.network_stage import FakeFiles, FakeSocket, Stage


class Line:
    """One connection with slots that a test fills."""

    def __init__(self, **limits: int) -> None:
        self.stage = Stage()
        self.connection, self.socket = self.stage.connect(FakeSocket(**limits))
        self.files = FakeFiles(lambda descriptor: self.stage.loop.sockets[descriptor])

    def slot(self) -> Context:
        context = Context(self.connection, memoryview(b""), 0, 0)
        context.api_key = 12
        self.connection.answers.slots.append(context)
        return context

    def drain(self, room: int = 1 << 30) -> None:
        self.socket.room += room
        self.stage.loop.settle()


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    made = Line()
    monkeypatch.setattr(sending, "os", SimpleNamespace(sendfile=made.files.sendfile))
    yield made
    assert all(piece.released <= 1 for piece in made.files.slices)


def fill(context: Context, answer: Any) -> None:
    if isinstance(answer, list):
        context.connection.put_parts(context, answer)
    else:
        context.answer = answer


def test_an_answer_waits_for_those_before_it(line: Line) -> None:
    first, second, third = line.slot(), line.slot(), line.slot()
    fill(third, b"3")
    line.connection.flush()
    fill(first, b"1")
    line.connection.flush()
    assert line.socket.taken == b"1"

    fill(second, b"2")
    line.connection.flush()

    assert line.socket.taken == b"123"
    assert line.stage.answered == [first, second, third]


def test_a_slot_without_an_answer_lets_the_next_one_through(line: Line) -> None:
    first, second = line.slot(), line.slot()
    fill(second, b"2")
    fill(first, b"")
    line.connection.flush()

    assert line.socket.taken == b"2"


@pytest.mark.parametrize("seed", range(40))
def test_everything_arrives_whatever_the_socket_takes(line: Line, seed: int) -> None:
    rng = random.Random(seed)
    line.socket.piece = rng.choice([1, 7, 100, 10_000, 1 << 30])
    expected = bytearray()
    for _ in range(60):
        line.socket.room = rng.choice([0, 1, 50, 5_000])
        parts: list[Any] = []
        for _ in range(rng.randrange(4)):
            data = rng.randbytes(rng.choice([0, 1, 30, 2_000]))
            expected += data
            kind: Any = rng.choice([bytes, memoryview, line.files.slice_of])
            parts.append(kind(data) if data else data)
        fill(line.slot(), parts or b"")
        line.connection.flush()
        if rng.random() < 0.3:
            line.stage.loop.turn()
    line.socket.piece = 1 << 30

    line.drain()

    assert line.socket.taken == expected
    assert [piece.released for piece in line.files.slices] == [1] * len(line.files.slices)
    assert (line.connection.answers.backlog_size_bytes, len(line.stage.answered)) == (0, 60)
    assert not line.stage.loop.writers


def test_more_parts_than_one_call_takes_are_cut(line: Line) -> None:
    parts: list[Any] = [b"x" * 100] * (2 * IOV_MAX + 5)
    fill(line.slot(), parts)
    line.connection.flush()

    assert len(line.socket.taken) == 100 * len(parts)
    assert [count for count, _ in line.socket.calls] == [IOV_MAX, IOV_MAX, 1]


def test_what_stands_before_a_file_goes_out_with_it(line: Line) -> None:
    """Without MSG_MORE the head of a fetch answer would be a packet of its own."""
    fill(line.slot(), [b"head", b"more", line.files.slice_of(b"file"), b"tail", b"end"])
    line.connection.flush()

    assert line.socket.taken == b"headmorefiletailend"
    assert [flags for _, flags in line.socket.calls] == [sockets.MSG_MORE, 0]


def test_an_answer_written_directly_queues_behind_what_is_unsent(line: Line) -> None:
    line.socket.room = 3
    fill(line.slot(), b"first.")
    line.connection.flush()
    line.connection.write([b"second.", b"third."])

    line.drain()

    assert line.socket.taken == b"first.second.third."


def test_a_full_socket_keeps_what_is_written_directly(line: Line) -> None:
    line.socket.room = 0
    line.connection.write([b"first."])
    line.connection.write([b"second."])
    assert line.connection.answers.backlog_size_bytes == len(b"first.second.")

    line.drain(4)
    line.drain()

    assert line.socket.taken == b"first.second."


def test_ready_answers_behind_a_full_socket_count_as_unsent(line: Line) -> None:
    """Else a client that reads nothing could have as many large answers in memory as unanswered requests."""
    line.socket.room = 0
    for _ in range(5):
        fill(line.slot(), b"x" * (MAX_UNSENT_BYTES // 4))
        line.connection.flush()

    assert line.connection.congested
    assert not line.connection.answers.slots


@pytest.mark.parametrize(
    ("number", "is_the_files"), [(errno.EIO, True), (errno.EPIPE, False), (errno.ETIMEDOUT, False)]
)
def test_the_file_is_told_of_its_own_errors_and_not_of_the_sockets(line: Line, number: int, is_the_files: bool) -> None:
    piece = line.files.slice_of(b"0123456789")
    slot = line.slot()
    piece.error = number

    fill(slot, [b"head", piece])
    line.connection.flush()
    line.stage.loop.settle()

    assert [error.errno for error in piece.failures if error is not None] == ([number] if is_the_files else [])
    assert piece.released == 1
    assert line.connection.closed


def test_a_shortened_file_ends_the_connection_and_nothing_follows_its_bytes(line: Line) -> None:
    piece = line.files.slice_of(b"0123456789")
    first, second = line.slot(), line.slot()
    fill(first, [b"head", piece, b"tail"])
    fill(second, b"second")
    piece.data = b"0123"
    line.connection.flush()
    line.connection.flush()
    line.connection.write([b"direct"])

    line.stage.loop.settle()

    assert line.socket.taken == b"head0123"
    assert piece.released == 1
    assert line.socket.closed


def test_a_broken_socket_releases_files_and_closes_once(line: Line) -> None:
    pieces = [line.files.slice_of(b"x" * 10) for _ in range(3)]
    for piece in pieces:
        fill(line.slot(), [b"head", piece])
    line.socket.broken = True
    line.connection.flush()

    line.stage.loop.settle()

    assert [piece.released for piece in pieces] == [1, 1, 1]
    assert (line.socket.closed, line.stage.limits.total) == (True, 0)


def test_closing_releases_what_is_unsent_and_what_waits(line: Line) -> None:
    line.socket.room = 2
    sent, ready = line.files.slice_of(b"0123"), line.files.slice_of(b"4567")
    fill(line.slot(), [sent])
    line.connection.flush()
    line.slot()
    fill(line.slot(), [ready])

    line.connection.close("test")
    line.stage.loop.settle()

    assert (sent.released, ready.released) == (1, 1)


def test_an_answer_that_comes_after_the_close_releases_its_files(line: Line) -> None:
    waiting = line.slot()
    line.connection.close("test")
    line.stage.loop.settle()
    piece = line.files.slice_of(b"0123")

    fill(waiting, [b"head", piece])
    line.connection.flush()

    assert piece.released == 1
    assert line.socket.taken == b""


@pytest.mark.parametrize("seed", range(5))
def test_answers_completed_by_many_threads_stay_in_order(line: Line, seed: int) -> None:
    rng = random.Random(seed)
    line.socket.piece = 11
    line.socket.room = 500
    pairs = [(line.slot(), b"%06d" % number) for number in range(400)]
    shuffled = rng.sample(pairs, len(pairs))

    def complete(share: list[tuple[Context, bytes]]) -> None:
        for context, answer in share:
            fill(context, answer)
            context.connection.flush()

    threads = [threading.Thread(target=complete, args=(shuffled[number::3],)) for number in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        line.drain(200)
    line.drain()

    assert line.socket.taken == b"".join(answer for _, answer in pairs)
    assert len(line.stage.answered) == 400


def test_the_address_of_an_ipv4_client_is_its_own_on_an_ipv6_socket() -> None:
    assert plain_address("::ffff:10.1.2.3") == "10.1.2.3"
    assert plain_address("::1") == "::1"
    assert isinstance(Line().connection, Connection)


def test_addresses_are_told_apart_by_java_s_text_of_them() -> None:
    assert java_address("10.1.2.3") == "10.1.2.3"
    assert java_address("::1") == "0:0:0:0:0:0:0:1"
    assert java_address("2001:db8::00ff:0") == "2001:db8:0:0:0:0:ff:0"
    assert java_address("fe80::1%2") == "fe80:0:0:0:0:0:0:1%2"


def test_a_connection_whose_draining_fails_is_closed_and_not_tried_for_ever(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.socket.room = 0
    fill(line.slot(), b"answer")
    line.connection.flush()
    line.stage.loop.settle()

    def fail(connection: Connection) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(Connection, "drain", fail)
    line.drain()

    assert line.socket.closed
    assert line.stage.limits.total == 0
