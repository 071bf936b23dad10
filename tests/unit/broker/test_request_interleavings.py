"""Network thread, I/O threads and whoever completes promises, at every step's mercy: nothing is lost or doubled."""

import random
import struct
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.network import answers as answers_module
from kavka.broker.network import connection, network_thread, request_queue
from kavka.broker.requests import dispatcher, request_runner
from kavka.broker.requests.prepared import Prepared
from kavka.broker.requests.request_runner import InlineRequests
from kavka.broker.requests.session import Session
from kavka.cluster import promise
from kavka.protocol.codec import encode
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.interleaving import Interleaving, TurnLock
from tests.support.network_stage import HEARTBEAT, VERSION, FakeSocket, Stage, answers, request

MODULES = (answers_module, connection, network_thread, request_queue, request_runner, dispatcher, promise)
ANSWER = encode(HeartbeatResponse(error_code=0), VERSION)
KINDS = ("now", "now", "later", "later", "hold", "fail")


class Sometimes(Prepared):
    """Of requests that are answered at once, some are prepared, on any thread; and any may be small."""

    def __init__(self, play: "Play") -> None:
        self._play = play

    def run(self, frame: memoryview, cells: object, may_wait: bool) -> bytes | None:
        if b"now" not in bytes(frame) or self._play.random.random() < 0.5:
            return None
        return struct.pack(">ii", len(ANSWER) + 4, int.from_bytes(frame[4:8], "big")) + ANSWER

    def is_small(self, frame: memoryview) -> bool:
        return self._play.random.random() < 0.5


class Play:
    """One run: clients that send and take as the seed says, until every request has its answer."""

    def __init__(
        self, seed: int, monkeypatch: pytest.MonkeyPatch, *, clients: int, requests: int, max_bytes: int = -1
    ) -> None:
        self.random = random.Random(seed)
        self.turns = Interleaving(seed, MODULES, chance=self.random.choice([0.01, 0.03, 0.1, 0.4]))
        locks = SimpleNamespace(Lock=lambda: TurnLock(self.turns))
        for module in (connection, request_queue, promise):
            monkeypatch.setattr(module, "threading", locks)
        self.stage = Stage(
            max_requests=self.random.choice([1, 3, 500]),
            max_bytes=max_bytes,
            new_session=lambda listener_name: Session({HEARTBEAT: Sometimes(self)}),
        )
        inline = InlineRequests(self.stage.queue, self.stage.dispatcher, slow_ns=1 << 62)
        self.stage.thread._run_inline = inline.run
        self.cuts = max_bytes > 0
        self.requests = requests
        self.sockets: list[FakeSocket] = []
        self.sent = [0] * clients
        self.unsent = [b""] * clients
        self.expected = clients * requests
        for _ in range(clients):
            self.sockets.append(self.stage.connect(FakeSocket(room=0, piece=self.random.choice([3, 50, 1000])))[1])
        self.wanted = [[self.random.choice(KINDS) for _ in range(requests)] for _ in range(clients)]

    @property
    def prepared(self) -> int:
        """How many were answered by the short way, and written: those are counted last."""
        return sum(counted.count for counted in self.stage.cells.requests.values())

    @property
    def over(self) -> bool:
        return len(self.stage.answered) + self.prepared == self.expected and not any(
            each.answers.backlog for each in self.stage.thread.connections.values()
        )

    def network(self) -> None:
        while not self.over:
            self._clients()
            self.stage.loop.turn()
            self.turns.pass_on()

    def work(self, index: int) -> None:
        while not self.over:
            if not self._run_one(index):
                self.turns.pass_on()

    def complete(self) -> None:
        while not self.over:
            owed = self.stage.promises
            if owed:
                owed.pop(self.random.randrange(len(owed))).complete(HeartbeatResponse(error_code=7))
            self.turns.pass_on()

    def run(self) -> None:
        self.turns.run(self.network, lambda: self.work(0), lambda: self.work(1), self.complete)

    def _run_one(self, index: int) -> bool:
        # Looking and taking must be one step: the other I/O thread is here too.
        try:
            taken: Any = self.stage.queue._queue.get_nowait()
        except Exception:  # noqa: BLE001 - _queue.Empty, which SimpleQueue's module keeps to itself
            return False
        self.stage.io_threads[index].run_turn(taken, self.stage.cells, 0)
        return True

    def _clients(self) -> None:
        for number, socket in enumerate(self.sockets):
            if self.sent[number] < self.requests and self.random.random() < 0.5:
                for _ in range(self.random.randrange(1, 4)):
                    if self.sent[number] < self.requests:
                        self.unsent[number] += request(self.sent[number], self.wanted[number][self.sent[number]])
                        self.sent[number] += 1
            unsent = self.unsent[number]
            piece = self.random.randrange(len(unsent) + 1) if self.cuts else len(unsent)
            socket.input += unsent[:piece]
            self.unsent[number] = unsent[piece:]
            if self.random.random() < 0.5:
                socket.room += self.random.randrange(60)


@pytest.mark.parametrize("seed", range(30))
def test_every_request_is_answered_once_and_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(seed, monkeypatch, clients=2, requests=8)

    play.run()

    codes = {"now": 0, "later": 7, "hold": 7, "fail": 14}
    for socket, wanted in zip(play.sockets, play.wanted, strict=True):
        assert answers(socket.taken) == [(number, codes[kind]) for number, kind in enumerate(wanted)]
    assert play.stage.thread.waiting_count == 0
    assert not play.stage.deaths


@pytest.mark.parametrize("seed", range(10))
def test_a_request_that_comes_while_a_turn_ends_is_not_left_behind(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for attempt in range(30):
        turns = Interleaving(100 * seed + attempt, MODULES, chance=0.015)
        locks = SimpleNamespace(Lock=partial(TurnLock, turns))
        for module in (connection, request_queue):
            monkeypatch.setattr(module, "threading", locks)
        stage = Stage()
        _, socket = stage.connect()
        socket.input += request(0)
        stage.loop.turn()
        socket.input += request(1)

        turns.run(partial(stage.run_one, 0), stage.loop.turn)

        stage.settle()
        assert answers(socket.taken) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("seed", range(10))
def test_a_large_frame_that_begins_while_a_turn_ends_is_read_on(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "LARGE_FRAME_BYTES", 10)
    for attempt in range(30):
        turns = Interleaving(100 * seed + attempt, MODULES, chance=0.015)
        locks = SimpleNamespace(Lock=partial(TurnLock, turns))
        for module in (connection, request_queue):
            monkeypatch.setattr(module, "threading", locks)
        stage = Stage(max_bytes=10)
        _, socket = stage.connect()
        socket.input += request(0)
        stage.loop.turn()
        whole = request(1)
        socket.input += whole[:-5]

        turns.run(partial(stage.run_one, 0), stage.loop.turn)

        stage.settle()
        socket.input += whole[-5:]
        stage.settle()
        assert answers(socket.taken) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_limits_on_unanswered_requests_do_not_stop_a_connection_for_good(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (network_thread, connection):
        monkeypatch.setattr(module, "MAX_UNANSWERED", 3)
        monkeypatch.setattr(module, "MAX_UNSENT_BYTES", 40)
    for module in (request_runner, connection):
        monkeypatch.setattr(module, "LARGE_ANSWER_BYTES", 1)
    monkeypatch.setattr(connection, "READ_ON_BELOW", 2)
    play = Play(seed, monkeypatch, clients=2, requests=12)

    play.run()

    assert [len(answers(socket.taken)) for socket in play.sockets] == [12, 12]


@pytest.mark.parametrize("seed", range(20))
def test_memory_for_one_large_frame_is_enough_for_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "LARGE_FRAME_BYTES", 10)
    play = Play(seed, monkeypatch, clients=3, requests=5, max_bytes=10)

    play.run()

    assert [[number for number, _ in answers(socket.taken)] for socket in play.sockets] == [list(range(5))] * 3
    assert play.stage.queue._charged_bytes == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_connection_that_breaks_in_between_takes_nothing_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(seed, monkeypatch, clients=2, requests=8)
    victim, other = play.sockets
    breaks_at = play.random.randrange(100)

    monkeypatch.setattr(Play, "over", property(lambda self: len(whole_answers(other)) == 8 and victim.closed))

    def break_victim() -> None:
        for _ in range(breaks_at):
            play.turns.pass_on()
        if play.random.random() < 0.5:
            victim.broken = True
        victim.ended = True

    play.turns.run(play.network, lambda: play.work(0), lambda: play.work(1), play.complete, break_victim)

    received = whole_answers(victim)
    assert received == list(range(len(received)))
    play.stage.settle()
    assert play.stage.thread.waiting_count == 0
    assert play.stage.limits.total == 1


def whole_answers(socket: FakeSocket) -> list[int]:
    """The correlation ids of the answers that came whole; the last one may be cut."""
    found = []
    position = 0
    data = bytes(socket.taken)
    while position + 8 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        if position + 4 + size > len(data):
            break
        found.append(int.from_bytes(data[position + 4 : position + 8], "big"))
        position += 4 + size
    return found
