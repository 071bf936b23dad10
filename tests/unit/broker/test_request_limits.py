"""What bounds a client's requests: the queue's length, turns, unanswered requests; and who runs next."""

from pathlib import Path
from typing import Any, cast

import pytest

from kavka.broker.network.connection import LARGE_ANSWER_BYTES, MAX_PENDING_BYTES, MAX_UNANSWERED
from kavka.broker.requests.request_runner import TURN_REQUESTS
from kavka.protocol.framing import ARENA_SIZE_BYTES
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.network_stage import Stage, answers, request
from tests.support.partition_logs import batch_of


def test_a_held_connection_runs_nothing_until_its_answer(stage: Stage) -> None:
    connection, socket = stage.connect()
    socket.input += request(0, "hold") + request(1) + request(2)
    stage.settle()
    assert (stage.ran, answers(socket.taken)) == ([0], [])

    stage.promises.pop().complete(HeartbeatResponse(error_code=7))
    stage.settle()

    assert answers(socket.taken) == [(0, 7), (1, 0), (2, 0)]
    assert not connection.running.locked()


def test_requests_run_on_while_an_answer_waits_whose_effects_are_complete(stage: Stage) -> None:
    _, socket = stage.connect()
    socket.input += request(0, "later") + request(1)
    stage.settle()
    assert (stage.ran, answers(socket.taken)) == ([0, 1], [])

    stage.promises.pop().complete(HeartbeatResponse(error_code=7))

    assert answers(socket.taken) == [(0, 7), (1, 0)]


def test_a_connection_with_many_requests_lets_others_go_first(stage: Stage) -> None:
    _, greedy = stage.connect()
    greedy.input += b"".join([request(number) for number in range(3 * TURN_REQUESTS)])
    stage.loop.settle()
    _, modest = stage.connect()
    modest.input += request(1000)
    stage.loop.settle()

    stage.run_one()
    stage.run_one()

    assert len(answers(greedy.taken)) == TURN_REQUESTS
    assert answers(modest.taken) == [(1000, 0)]


def test_reading_pauses_at_the_limit_of_unanswered_requests_and_goes_on_below_it(stage: Stage) -> None:
    connection, socket = stage.connect()
    for number in range(MAX_UNANSWERED + 50):
        socket.input += request(number, "later")
        stage.settle()

    assert len(stage.promises) == MAX_UNANSWERED
    assert not connection.reading
    assert socket.input

    while stage.promises:
        stage.promises.pop(0).complete(HeartbeatResponse(error_code=0))
        stage.settle()
    assert [number for number, _ in answers(socket.taken)] == list(range(MAX_UNANSWERED + 50))
    assert connection.reading


@pytest.mark.parametrize("size_bytes", [10_000, 900_000])
def test_a_connection_that_is_held_is_read_no_further_than_its_share_of_memory(stage: Stage, size_bytes: int) -> None:
    connection, socket = stage.connect()
    count = 5 * MAX_PENDING_BYTES // size_bytes
    # Fewer than the limit of unanswered requests: here it is their bytes.
    count = min(count, MAX_UNANSWERED - 2)
    socket.input += request(0, "hold")
    stage.settle()
    for number in range(1, count + 1):
        socket.input += request(number, pad=size_bytes)
        stage.settle()

    waiting_bytes = sum(frame.nbytes for frame, _, _ in connection.pending)
    assert not connection.reading
    assert MAX_PENDING_BYTES <= waiting_bytes < MAX_PENDING_BYTES + size_bytes + ARENA_SIZE_BYTES

    stage.promises.pop().complete(HeartbeatResponse(error_code=0))
    stage.settle()

    assert [number for number, _ in answers(socket.taken)] == list(range(count + 1))
    assert connection.reading
    assert connection.received_bytes == connection.taken_bytes


def test_requests_beyond_the_limit_run_when_those_before_are_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kavka.broker.network.network_thread", "kavka.broker.network.connection"):
        monkeypatch.setattr(f"{name}.MAX_UNANSWERED", 3)
    _, socket = stage.connect()
    socket.input += b"".join([request(number, "later") for number in range(5)])
    stage.settle()
    assert stage.ran == [0, 1, 2]

    for _ in range(2):
        stage.promises.pop(0).complete(HeartbeatResponse(error_code=0))
        stage.run_one()

    assert stage.ran == [0, 1, 2, 3, 4]


def test_a_client_that_takes_no_answers_is_not_read_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kavka.broker.network.network_thread", "kavka.broker.network.connection"):
        monkeypatch.setattr(f"{name}.MAX_UNSENT_BYTES", 200)
    connection, socket = stage.connect()
    socket.room = 0
    for number in range(100):
        socket.input += request(number)
        stage.settle()
    assert not connection.reading
    assert len(stage.ran) < 50

    socket.room = 1 << 30
    stage.settle()

    assert [number for number, _ in answers(socket.taken)] == list(range(100))


def test_what_the_network_thread_runs_itself_is_not_read_on_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kavka.broker.network.network_thread", "kavka.broker.network.connection"):
        monkeypatch.setattr(f"{name}.MAX_UNSENT_BYTES", 1000)
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits")
    connection, socket = core.connection, core.socket
    socket.room = 0
    frames = [produce_frame(9, number, {("visits", 0): bytes(batch_of(b"x"))}) for number in range(100)]
    for frame in frames:
        core.ask(frame)
    size_bytes = connection.answers.backlog_size_bytes
    assert not connection.reading
    assert 900 <= size_bytes <= 1100
    assert core.log("visits").log_end_offset < 50

    socket.room = 1 << 30
    core.stage.settle()

    assert core.log("visits").log_end_offset == 100
    assert core.stage.cells.requests[0].count + len(core.stage.answered) == 100
    core.close()


def test_large_answers_that_wait_for_others_before_them_count_as_unsent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kavka.broker.network.network_thread", "kavka.broker.network.connection"):
        monkeypatch.setattr(f"{name}.MAX_UNSENT_BYTES", 40)
    for name in ("kavka.broker.requests.request_runner", "kavka.broker.network.connection"):
        monkeypatch.setattr(f"{name}.LARGE_ANSWER_BYTES", 1)
    connection, socket = stage.connect()
    kinds = ["later", "now", "later", "now", "now", "now", "now", "now"]
    for number, kind in enumerate(kinds):
        socket.input += request(number, kind)
        stage.settle()
        if number == 2:
            stage.promises.pop().complete(HeartbeatResponse(error_code=7))
    assert stage.ran == [0, 1, 2, 3]
    assert connection.congested

    stage.promises.pop().complete(HeartbeatResponse(error_code=7))
    stage.settle()

    assert answers(socket.taken) == [(number, 7 * (kind == "later")) for number, kind in enumerate(kinds)]
    assert connection.answers.held_up_size_bytes == 0
    assert connection.reading


def test_who_asks_one_thing_at_a_time_waits_one_turn_of_each_of_those_that_pipeline() -> None:
    stage = Stage(max_requests=8)
    greedy = [stage.connect()[1] for _ in range(3)]
    victim, socket = stage.connect()
    for number in range(5):
        for other in greedy:
            # More than is run meanwhile: they have requests waiting all the time.
            other.input += b"".join([request(n) for n in range(40)])
        stage.loop.settle()
        socket.input += request(number)
        stage.loop.settle()

        for _ in range(len(greedy) + 1):
            stage.run_one()
            stage.loop.settle()

        assert answers(socket.taken) == [(n, 0) for n in range(number + 1)]
        assert victim.reading


def test_while_the_queue_is_full_connections_are_read_on_when_their_own_requests_have_run() -> None:
    stage = Stage(max_requests=2)
    clients = [stage.connect() for _ in range(5)]
    for _, socket in clients:
        socket.input += b"".join([request(number) for number in range(TURN_REQUESTS + 2)])
        stage.loop.turn()
    for _, socket in clients:
        socket.input += request(TURN_REQUESTS + 2)
    stage.loop.settle()
    # The first one's next request found room; what the others bring beyond one read stays with the kernel.
    assert not any(connection.reading for connection, _ in clients)
    assert [bool(socket.input) for _, socket in clients] == [False, True, True, True, True]

    for _ in clients:
        stage.run_one()
    stage.loop.settle()
    assert not any(connection.reading for connection, _ in clients)
    stage.settle()

    assert [len(answers(socket.taken)) for _, socket in clients] == [TURN_REQUESTS + 3] * 5
    assert all(connection.reading for connection, _ in clients)


def test_any_number_of_connections_with_one_request_each_is_read() -> None:
    stage = Stage(max_requests=2)
    clients = [stage.connect() for _ in range(10)]
    for _, socket in clients:
        socket.input += request(1)
    stage.loop.settle()
    assert all(connection.reading for connection, _ in clients)

    stage.settle()

    assert [answers(socket.taken) for _, socket in clients] == [[(1, 0)]] * 10


def test_requests_that_wait_for_their_own_connection_do_not_fill_the_queue_for_others() -> None:
    stage = Stage(max_requests=4)
    _, held = stage.connect()
    held.input += b"".join([request(number, "hold") for number in range(20)])
    stage.settle()
    assert stage.thread.waiting_count >= 4

    other, socket = stage.connect()
    for number in range(10):
        socket.input += request(2 * number) + request(2 * number + 1)
        stage.settle()

    assert len(answers(socket.taken)) == 20
    assert other.reading


def test_a_connection_that_waits_for_room_and_ends_its_turn_held_is_read_on_when_it_is_answered() -> None:
    stage = Stage(max_requests=1)
    _, first = stage.connect()
    first.input += request(0, "hold")
    stage.loop.turn()
    waiting, second = stage.connect()
    second.input += request(10, "hold") + request(11)
    stage.loop.settle()
    assert not waiting.reading

    stage.settle()
    while stage.promises:
        stage.promises.pop().complete(HeartbeatResponse(error_code=0))
        stage.settle()

    assert waiting.reading
    assert answers(second.taken) == [(10, 0), (11, 0)]


def test_a_frame_beyond_the_limit_closes_the_connection(stage: Stage) -> None:
    _, socket = stage.connect()
    socket.input += request(0) + (1 << 30).to_bytes(4, "big")
    stage.settle()

    assert socket.closed
    assert len(stage.rejected) == 1


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_head_that_is_filled_while_a_large_answer_behind_it_is_counted_is_written() -> None:
    stage = Stage()
    connection, socket = stage.connect()
    socket.input += request(0, "later") + request(1, "later")
    stage.settle()
    head, behind = connection.answers.slots
    behind.answer = bytes(LARGE_ANSWER_BYTES)
    lock = connection.write_lock

    class Meanwhile:
        """The write lock, in whose holder's time another thread answers the head and finds it taken."""

        def __enter__(self) -> None:
            lock.acquire()
            head.answer = b"head"
            connection.flush()
            assert not socket.taken

        def __exit__(self, *_: object) -> None:
            lock.release()

        acquire = staticmethod(lock.acquire)
        release = staticmethod(lock.release)

    connection.write_lock = cast("Any", Meanwhile())
    connection.hold_up_large(behind)

    assert socket.taken.startswith(b"head")


def test_what_a_client_sent_before_it_ended_its_sending_is_run(stage: Stage) -> None:
    connection, socket = stage.connect()
    socket.input += b"".join(request(number, "silent") for number in range(20))
    socket.ended = True

    stage.settle()

    assert stage.ran == list(range(20))
    assert connection.closed
