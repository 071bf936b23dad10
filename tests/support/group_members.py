"""Group members as processes that a test starts, orders about and kills, and a feeder that gives them work."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer

from tests.support.group_journal import all_committed, assert_sound, committed
from tests.support.java_classes import compiled
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.wire import GROUP, RawClient

REPOSITORY = Path(__file__).resolve().parents[2]
JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
WAIT_S = 120.0
CLOSE_TIMEOUT_S = 120.0
FLUSH_S = 120.0
FEED_PAUSE_S = 0.02

Event = dict[str, Any]

FAST_GROUPS = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}
"""Broker settings that let tests see a session expire within seconds, of who asks for it (MORTAL, `be_mortal`)."""
QUICK = {
    "session.timeout.ms": "30000",
    "heartbeat.interval.ms": "200",
    "retry.backoff.ms": "50",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "200",
}
"""Consumer settings of every member, unless a test says otherwise. Who lives loses no session on a busy machine."""
MORTAL = {"session.timeout.ms": "10000"}
"""Settings of those who will be killed or frozen: the others wait for the end of their sessions."""


class Member:
    """One member process; `events` is what it reported so far. Owned by one thread.

    `library` is confluent, kafka-python, aiokafka, or a bundle of Java clients (kafka-4.3, clients-0.9.0.1, ...).
    """

    def __init__(self, directory: Path, name: str, library: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self.identity = settings.get("group.instance.id", name)
        self.library = library
        self.by_epoch = settings.get("group.protocol") == "consumer"
        self.killed_at_ns: int | None = None
        self._output = directory / f"{name}.events"
        self._events: list[Event] = []
        self._parsed_bytes = 0
        self._complaints = directory / f"{name}.log"
        words = [f"{key}={value}" for key, value in settings.items()]
        if library.startswith(("kafka-4", "kafka-3", "clients-")):
            command = ["java", *JVM, "-cp", compiled("GroupMember", library), "GroupMember", *words]
        else:
            command = [sys.executable, "-m", "tests.support.group_member", library, *words]
        with self._output.open("wb") as output, self._complaints.open("wb") as complaints:
            self._popen = subprocess.Popen(
                command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=output, stderr=complaints
            )

    @property
    def events(self) -> list[Event]:
        # Only what is new is parsed: those who wait look again and again.
        with self._output.open("rb") as output:
            output.seek(self._parsed_bytes)
            whole, end, _ = output.read().rpartition(b"\n")
        self._parsed_bytes += len(whole + end)
        self._events += [json.loads(line) for line in whole.splitlines() if line.startswith(b"{")]
        return self._events

    @property
    def owned(self) -> set[str]:
        """The partitions it holds by its own report."""
        held: set[str] = set()
        for event in self.events:
            if event["event"] == "assigned":
                held |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                held -= set(event["partitions"])
        return held

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event["event"] in kinds]

    def wait_for(self, what: Callable[["Member"], Any], timeout_s: float = WAIT_S) -> Any:
        """Wait until the condition on this member is true; its value. Raises TimeoutError with what was reported."""

        def looked() -> Any:
            value = what(self)
            if not value and self._popen.poll() is not None:
                raise RuntimeError(f"{self.story()}\nended with {self._popen.returncode}")
            return value

        return wait_until(looked, timeout_s, self.story)

    def order(self, text: str) -> None:
        """Have it do something (see group_member.py), and wait until it has."""
        done = len(self.of("obeyed"))
        self._write(text)
        self.wait_for(lambda one: len(one.of("obeyed")) > done)

    def close(self) -> None:
        """Have it leave the group and end."""
        self._write("close")
        self._popen.wait(CLOSE_TIMEOUT_S)
        assert self.of("closed"), self.story()

    def kill(self) -> None:
        """kill -9: the group learns of it when the session times out."""
        self._popen.kill()
        self._popen.wait()
        self.killed_at_ns = time.monotonic_ns()

    def freeze(self) -> None:
        """Stop it where it stands, as a long garbage collection or a suspended machine does."""
        self._popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def story(self) -> str:
        events = "\n".join(str(event) for event in self.events[-12:])
        return f"{self.name} ({self.library}):\n{events}\n{self._complaints.read_text()[-1500:]}"

    def _write(self, text: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(f"{text}\n".encode())
        self._popen.stdin.flush()

    def end(self) -> None:
        """Take the process away, whatever it does."""
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()


class Group:
    """A group of one topic and its members so far, in the order they came. `end` takes all processes away."""

    def __init__(self, broker: RunningServer, directory: Path, topic: str) -> None:
        self.broker = broker
        self.directory = directory
        self.topic = topic
        self.group_id = f"{topic}.group"
        self.members: list[Member] = []

    def create_topic(self, partitions: int) -> None:
        create_topic(self.broker, self.topic, partitions=partitions)

    def be_mortal(self) -> None:
        """MORTAL for a group of the new protocol: from its members' next heartbeats on."""
        with RawClient(self.broker.host, self.broker.port) as client:
            session = ("consumer.session.timeout.ms", MORTAL["session.timeout.ms"])
            altered = client.alter(GROUP, self.group_id, [session])
        assert altered.error_code == 0, altered.error_message

    def join(self, library: str, settings: Mapping[str, str] | None = None) -> Member:
        """Start a member; it does not wait for the assignment."""
        asked = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": self.group_id,
            "member.topics": self.topic,
            **QUICK,
            **(settings or {}),
        }
        if asked.get("group.protocol") == "consumer":
            for name in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
                asked.pop(name, None)
        if "member.pattern" in asked or "member.re2" in asked:
            del asked["member.topics"]
        member = Member(self.directory, f"{library}.{len(self.members)}", library, asked)
        self.members.append(member)
        return member

    def wait_until_shared(self, members: Sequence[Member], partitions: int, timeout_s: float = WAIT_S) -> None:
        """Wait until these members together own each of the topic's partitions, each of them one at least."""
        wanted = sorted(f"{self.topic}-{index}" for index in range(partitions))

        def shared() -> bool:
            held = [member.owned for member in members]
            return all(held) and sorted(name for one in held for name in one) == wanted

        wait_until(shared, timeout_s, self.story)

    def wait_until_done(self, ends: Mapping[str, int], timeout_s: float = WAIT_S) -> None:
        """Wait until a commit stands at each end."""

        def what_is_missing() -> str:
            failed = [f"{member.name}: {event}" for member in self.members for event in member.of("commit_failed")[-3:]]
            return "\n".join([f"{ends} != {committed(self.members)}", *failed, self.story()])

        wait_until(lambda: all_committed(self.members, ends), timeout_s, what_is_missing)

    def assert_sound(self, ends: Mapping[str, int], *, zombies: Sequence[Member] = ()) -> None:
        assert_sound(self.members, ends, zombies=zombies)

    def story(self) -> str:
        return "\n".join(member.story() for member in self.members)

    def end(self) -> None:
        for member in self.members:
            member.end()


class Feeder:
    """Produces a record to each partition again and again, until `stop`; from then on `ends` is final."""

    def __init__(self, broker: RunningServer, topic: str, partitions: int) -> None:
        self.ends = {f"{topic}-{index}": 0 for index in range(partitions)}
        self._topic = topic
        self._partitions = partitions
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        self._thread = threading.Thread(target=self._feed, name="feeder")

    def stop(self) -> dict[str, int]:
        """The end offset of each partition: everything below is in the log.

        A last record comes to each now: what was delivered while the group moved may have had its commit refused, and
        a member commits again only behind what is delivered next.
        """
        self._stopping.set()
        self._thread.join()
        self._produce()
        assert self._producer.flush(FLUSH_S) == 0
        return self.ends

    def _feed(self) -> None:
        while not self._stopping.is_set():
            self._produce()
            self._producer.poll(0)
            self._stopping.wait(FEED_PAUSE_S)

    def _produce(self) -> None:
        for index in range(self._partitions):
            self._producer.produce(self._topic, b"x" * 20, partition=index, on_delivery=self._delivered)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            name = f"{message.topic()}-{message.partition()}"
            self.ends[name] = max(self.ends[name], message.offset() + 1)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()


def feed(broker: RunningServer, topic: str, partitions: int, count: int) -> dict[str, int]:
    """Produce `count` records to each partition; the offset after the last of each."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    ends: dict[str, int] = {}

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        name = f"{topic}-{message.partition()}"
        ends[name] = max(ends.get(name, 0), message.offset() + 1)

    for _ in range(count):
        for index in range(partitions):
            producer.produce(topic, b"x" * 20, partition=index, on_delivery=delivered)
    assert producer.flush(FLUSH_S) == 0
    return ends
