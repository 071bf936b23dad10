"""A broker that answers well, badly or not at all, as dice have it: each request hears of its end, once."""

import contextlib
import random
import struct
import threading
from typing import Any

import pytest

from kavka.client import ClientError, NetworkClient
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.client_line import HEARTBEAT, SETTINGS, TIMEOUT_S
from tests.support.processes import wait_until
from tests.support.scripted_broker import ScriptedBroker, Visitor, framed, versions_response

REQUESTS = 60


class MoodyBroker:
    """Serves one connection after the other on a thread, until it is told to stop."""

    def __init__(self, broker: ScriptedBroker, dice: random.Random) -> None:
        self._broker = broker
        self._dice = dice
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._broker.stop_listening()
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                visitor = self._broker.accept()
                # The client may leave at any time.
                with contextlib.suppress(OSError):
                    while self._answer(visitor):
                        pass
                visitor.socket.close()

    def _answer(self, visitor: Visitor) -> bool:
        """False when the connection is to be closed."""
        dice = self._dice
        asked = visitor.asked()
        good = framed(asked, versions_response() if asked.header.api_key == 18 else HeartbeatResponse(error_code=0))
        mood = dice.choice(["good"] * 12 + ["pieces", "cut", "random", "flipped", "twice", "reset", "huge", "silent"])
        if mood == "pieces":
            cut = dice.randrange(len(good))
            visitor.socket.sendall(good[:cut])
            visitor.socket.sendall(good[cut:])
        elif mood == "cut":
            visitor.socket.sendall(good[: dice.randrange(len(good))])
            return False
        elif mood == "random":
            visitor.socket.sendall(dice.randbytes(dice.randrange(1, 200)))
        elif mood == "flipped":
            bad = bytearray(good)
            bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
            visitor.socket.sendall(bad)
        elif mood == "twice":
            visitor.socket.sendall(good + good)
        elif mood == "reset":
            visitor.reset()
            return False
        elif mood == "huge":
            visitor.socket.sendall(struct.pack(">i", 2**31 - 1) + dice.randbytes(1000))
        elif mood == "good":
            visitor.socket.sendall(good)
        return True


@pytest.mark.parametrize("discovers", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_every_request_hears_of_its_end_once(seed: int, discovers: bool) -> None:
    settings = SETTINGS._replace(
        discover_versions=discovers, request_timeout_ms=200, connection_setup_timeout_ms=200, max_in_flight=3
    )
    client = NetworkClient(settings)
    ends: list[list[Any]] = []
    with ScriptedBroker() as broker:
        moody = MoodyBroker(broker, random.Random(seed))

        def step() -> bool:
            while len(ends) < REQUESTS and client.ready(broker.node):
                end: list[Any] = []
                ends.append(end)
                client.send(broker.node, HEARTBEAT, end.append)
            client.poll(5)
            return len(ends) == REQUESTS and all(ends)

        try:
            wait_until(step, 3 * TIMEOUT_S, lambda: f"{sum(map(len, ends))} of {len(ends)} have ended")
        finally:
            client.close()
            moody.stop()
    assert all(len(end) == 1 for end in ends)
    answered = [end[0] for end in ends if not isinstance(end[0], ClientError)]
    assert all(isinstance(answer, HeartbeatResponse) for answer in answered)
    assert answered
    assert client.counts.answers == len(answered)
    assert client.counts.bad_answers > 0
