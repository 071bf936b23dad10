"""A good client at a fixed rate: `python -m tests.support.steady_client HOST PORT TOPIC RATE`, until SIGTERM.

It asks on one connection, produce (acks=1), fetch and metadata in turn, whatever the answers take: each request has
a time at which it is due, and its latency counts from there, so that a stalled broker cannot hide. At SIGTERM it prints
one line of JSON: requests, failures, and the latencies' p50, p99 and maximum in milliseconds.
"""

import contextlib
import json
import select
import socket
import struct
import sys
import time
from collections import deque

from kavka.protocol.codec import decode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.produce import ProduceResponse
from tests.support.termination import Termination
from tests.support.wire import FETCH_VERSION, PRODUCE_VERSION, batch_of, fetch_request, frame, produce_request

METADATA_VERSION = 5
TICK_S = 0.001
LAST_ANSWERS_S = 60.0


def main(host: str, port: int, topic: str, rate: int) -> None:
    termination = Termination()
    batch = batch_of([b"good"], timestamp_ms=time.time_ns() // 1_000_000)
    requests = [
        frame(produce_request(topic, batch), PRODUCE_VERSION),
        frame(fetch_request(topic, 0, max_bytes=200), FETCH_VERSION),
        frame(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), METADATA_VERSION),
    ]
    client = socket.create_connection((host, port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setblocking(False)
    print("STARTED", flush=True)
    print(json.dumps(_Run(client, requests, rate).until(termination)), flush=True)


class _Run:
    def __init__(self, client: socket.socket, requests: list[bytes], rate: int) -> None:
        self._client = client
        self._poll = select.poll()
        self._poll.register(client, select.POLLIN)
        self._requests = requests
        self._rate = rate
        self._due: deque[tuple[float, int]] = deque()
        self._unsent = b""
        self._received = bytearray()
        self._latencies_ms: list[float] = []
        self._failures = 0

    def until(self, termination: Termination) -> dict[str, float]:
        started_at = time.monotonic()
        asked = 0
        while not termination.wait():
            due = int((time.monotonic() - started_at) * self._rate)
            while asked < due:
                kind = asked % len(self._requests)
                self._unsent += self._requests[kind]
                self._due.append((started_at + asked / self._rate, kind))
                asked += 1
            self._exchange(TICK_S)
        deadline = time.monotonic() + LAST_ANSWERS_S
        while self._due and time.monotonic() < deadline:
            self._exchange(TICK_S)
        ordered = sorted(self._latencies_ms)
        return {
            "requests": asked,
            "failures": self._failures + len(self._due),
            "p50": ordered[len(ordered) // 2],
            "p99": ordered[len(ordered) * 99 // 100],
            "max": ordered[-1],
        }

    def _exchange(self, timeout_s: float) -> None:
        """Send what the broker takes, take what it sends."""
        if self._unsent:
            with contextlib.suppress(BlockingIOError):
                self._unsent = self._unsent[self._client.send(self._unsent) :]
        if not self._poll.poll(timeout_s * 1000):
            return
        data = self._client.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed a good client's connection")
        now = time.monotonic()
        self._received += data
        position = 0
        while len(self._received) - position >= 4:
            (size,) = struct.unpack_from(">i", self._received, position)
            if len(self._received) - position - 4 < size:
                break
            due_at, kind = self._due.popleft()
            self._latencies_ms.append((now - due_at) * 1000)
            self._check(kind, bytes(self._received[position + 4 : position + 4 + size]))
            position += 4 + size
        del self._received[:position]

    def _check(self, kind: int, answer: bytes) -> None:
        if kind == 0:
            response = decode(ProduceResponse, PRODUCE_VERSION, answer, 5)
            self._failures += response.responses[0].partition_responses[0].error_code != 0
        elif kind == 1:
            # Correlation id, throttle time, error code.
            self._failures += struct.unpack_from(">h", answer, 8)[0] != 0
        else:
            self._failures += len(answer) < 40


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
