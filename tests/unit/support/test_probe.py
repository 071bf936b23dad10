"""Whether a broker can be used is told from what it answers, not from that it answers."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support.probe import CORRELATION_ID, answers, is_ready

Answering = Callable[[bytes], tuple[str, int]]
BROKER = struct.pack(">ih4sih", 5, 4, b"host", 9092, 4) + b"rack"


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Starts a server that answers one connection with these bytes, and hangs up; its address."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def start(answer: bytes) -> tuple[str, int]:
            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1024)
                    connection.sendall(answer)

            threads.append(threading.Thread(target=serve))
            threads[0].start()
            return "127.0.0.1", listener.getsockname()[1]

        yield start
        for thread in threads:
            thread.join()


def framed(body: bytes, correlation_id: int = CORRELATION_ID) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (framed(struct.pack(">i", 1) + BROKER + struct.pack(">ii", 5, 0)), True),
        (framed(struct.pack(">i", 1) + BROKER + struct.pack(">ii", -1, 0)), False),
        (framed(struct.pack(">iii", 0, -1, 0)), False),
        (framed(struct.pack(">iii", 0, 5, 0)), False),
        (framed(struct.pack(">i", 1) + BROKER + struct.pack(">ii", 5, 0), correlation_id=8), False),
        (framed(struct.pack(">i", 1) + BROKER + struct.pack(">ii", 5, 0))[:-1], False),
        (b"", False),
    ],
    ids=["registered", "no controller", "no broker", "another controller", "another answer", "cut short", "closed"],
)
def test_a_broker_is_ready_once_it_is_registered_with_a_controller(
    answering: Answering, answer: bytes, ready: bool
) -> None:
    assert is_ready(*answering(answer), timeout_s=60) is ready


@pytest.mark.parametrize(("code", "answered"), [(0, True), (35, False)])
def test_an_answer_counts_unless_it_is_an_error(answering: Answering, code: int, answered: bool) -> None:
    assert answers(*answering(framed(struct.pack(">hi", code, 0))), timeout_s=60) is answered


def test_nobody_listening_is_neither_an_answer_nor_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert (answers("127.0.0.1", port), is_ready("127.0.0.1", port)) == (False, False)
