"""Clients in three languages that do the same, a line each, while something goes wrong with their broker.

produce TOPIC VALUE          exactly once, however often it takes: `ok`
once TOPIC VALUE             without a second try: `ok`, or `error CODE`
consume TOPIC GROUP COUNT    as a member that commits: `read VALUE,VALUE`
"""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.support.java_programs import JavaProgram
from tests.support.other_clients import go_client

LANGUAGES = ("python", "java", "go")
POLL_S = 0.1
FLUSH_S = 120.0
_COMMON = {
    "client.id": "python",
    "socket.timeout.ms": 1_500,
    "retry.backoff.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
}


class FaultedClient(Protocol):
    """One client; `answer` is to be asked for once after each `tell`."""

    def ask(self, line: str) -> str: ...

    def tell(self, line: str) -> None: ...

    def answer(self) -> str: ...


@contextmanager
def faulted_client(language: str, bootstrap: str, directory: Path) -> Iterator[FaultedClient]:
    """Skips where the language is not installed."""
    if language == "python":
        with ThreadPoolExecutor(1) as thread:
            yield _Confluent(bootstrap, thread)
    elif language == "java":
        with JavaProgram("FaultedClient", directory / "java.log", bootstrap) as program:
            yield program
    else:
        with _go(str(go_client("faulted")), bootstrap, directory / "go.log") as running:
            yield running


class _Confluent:
    """librdkafka, in this process."""

    def __init__(self, bootstrap: str, thread: ThreadPoolExecutor) -> None:
        from confluent_kafka import Producer

        self._settings = {"bootstrap.servers": bootstrap, **_COMMON}
        self._thread = thread
        self._producer: Any = Producer(
            {**self._settings, "enable.idempotence": True, "request.timeout.ms": 1_000, "linger.ms": 0}
        )

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        self._told = self._thread.submit(self._do, *line.split())

    def answer(self) -> str:
        return self._told.result()

    def _do(self, verb: str, topic: str, *words: str) -> str:
        if verb == "produce":
            return _sent(self._producer, topic, words[0])
        if verb == "once":
            from confluent_kafka import Producer

            # What has no second try is to have its answer also on a busy machine.
            once = {"message.send.max.retries": 0, "socket.timeout.ms": 60_000}
            return _sent(Producer({**self._settings, **once}), topic, words[0])
        return self._consume(topic, words[0], int(words[1]))

    def _consume(self, topic: str, group: str, count: int) -> str:
        from confluent_kafka import Consumer

        settings = {**self._settings, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer: Any = Consumer(settings)
        read: list[str] = []
        try:
            consumer.subscribe([topic])
            while len(read) < count:
                record = consumer.poll(POLL_S)
                if record is not None and record.error() is None:
                    read.append(record.value().decode())
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return "read " + ",".join(read)


def _sent(producer: Any, topic: str, value: str) -> str:
    told: list[Any] = []
    producer.produce(topic, value.encode(), on_delivery=lambda error, _: told.append(error))
    producer.flush(FLUSH_S)
    assert told, "nothing was said of it"
    return "ok" if told[0] is None else f"error {told[0].code()}"


class _Program:
    """A program that answers each line with a line."""

    def __init__(self, popen: "subprocess.Popen[str]", log: Path) -> None:
        self._popen = popen
        self._log = log

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def answer(self) -> str:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        assert line, f"it ended with {self._popen.wait()}: {self._log.read_text()[-3000:]}"
        return line.rstrip("\n")


@contextmanager
def _go(program: str, bootstrap: str, log: Path) -> Iterator[_Program]:
    with log.open("ab") as complaints:
        popen = subprocess.Popen(
            [program, bootstrap], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True
        )
    try:
        yield _Program(popen, log)
    finally:
        popen.kill()
        popen.communicate()
