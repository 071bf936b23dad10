"""The end of an interpreter with a producer that nobody closed: it is flushed, and not waited for for ever."""

import subprocess
import sys

import pytest

from kavka.protocol.api import ApiKey
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker
from tests.support.scripted_broker import Asked

TIMEOUT_S = 240.0
PROGRAM = """
import sys, threading
from kavka.client import Producer, client_thread

client_thread.EXIT_TIMEOUT_MS = float(sys.argv[3])
times = {"linger_ms": 100_000, "delivery_timeout_ms": 200_000}
producer = Producer(bootstrap_servers=sys.argv[1], buffer_memory=100_000, **times)
told = lambda metadata, error: print(type(error).__name__, flush=True)
producer.send(sys.argv[2], b"kavka", on_delivery=told)
"""
WAYS = {
    "answered": ("", 100_000, ["NoneType"]),
    # The grace for a busy machine: its thread tells of the end before the interpreter is gone.
    "never answered": ("client_thread.JOIN_GRACE_MS = 100_000.0", 300, ["ClientClosedError"]),
    # What comes before it has been told by then, however short the time is that is left at the end.
    "a callback that waits for ever": (
        "producer.flush(); producer.send(sys.argv[2], b'', on_delivery=lambda *_: threading.Event().wait())",
        2_000,
        ["NoneType"],
    ),
    "a thread that sends on": (
        "threading.Thread(target=lambda: [producer.send(sys.argv[2], b'') for _ in iter(int, 1)], daemon=True).start()",
        100_000,
        ["NoneType"],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_nobody_closed_is_sent_or_given_up(way: str) -> None:
    more, limit_ms, expected = WAYS[way]

    def mangle(asked: Asked, frame: bytes) -> bytes:
        return b"" if way == "never answered" and asked.header.api_key == ApiKey.PRODUCE else frame

    serving = ProducersBroker()
    with AnsweringBroker(serving.answers, mangle) as broker:
        serving.node = broker.node
        command = [sys.executable, "-c", PROGRAM + more, broker.bootstrap, TOPIC, str(limit_ms)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:1] == expected
