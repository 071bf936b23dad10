"""Topics made, written, compacted and deleted at random, on a real broker with tiny segments that is killed at times.

Each writer has names of its own. It deletes a topic at once, beside a request that is flushed just then, or when a
compaction is about to be swapped in, and makes it again under the same name. The seed is printed with a failure.
"""

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.records.batch import Record, iter_batch_headers, iter_records
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import FETCH_VERSION, PRODUCE_VERSION, Wire, batch_of, fetch_request, produce_request

SECONDS = float(os.environ.get("SOAK_SECONDS", "30"))
WRITERS = 3
NAMES_A_WRITER = 2
KEYS = 6
TIMEOUT_S = 180.0
DELAY_S = 1.0
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.threads": "2",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "700",
    "log.segment.delete.delay.ms": str(int(DELAY_S * 1000)),
    "auto.create.topics.enable": "false",
}
POLICIES = ("compact", "delete", "compact,delete")
LOST = (ConnectionError, TimeoutError, OSError)
"""The broker was killed before it answered: what was asked may have happened or not."""
LATE_BYTES = 300


class Sent(NamedTuple):
    """A record whose answer came (`offset`), or was lost (-1)."""

    offset: int
    key: bytes
    value: bytes


class Story:
    """One name's topics, one after the other, on a connection of its own."""

    def __init__(self, broker: KavkaProcess, name: str, chance: random.Random) -> None:
        self.name = name
        self.folder = broker.log_dir / f"{name}-0"
        self.chance = chance
        self.wire = Wire(broker.host, broker.port, timeout_s=TIMEOUT_S)
        self.policy = ""
        self.sent: list[Sent] = []
        self.late: list[Sent] = []
        self.generation = self.value = 0

    def live(self) -> None:
        """From creation to deletion."""
        self.create()
        for _ in range(self.chance.randrange(1, 4)):
            for _ in range(self.chance.randrange(2, 60)):
                self.write()
            self.check()
        self.chance.choice((self.delete, self.delete_beside_a_flush, self.delete_at_a_swap))()

    def create(self) -> None:
        self.policy = self.chance.choice(POLICIES)
        configs = {"cleanup.policy": self.policy, "segment.bytes": "1000", "index.interval.bytes": "100"}
        configs |= {"file.delete.delay.ms": str(int(DELAY_S * 1000)), "retention.ms": "-1", "delete.retention.ms": "0"}
        if self.chance.random() < 0.6:
            configs["flush.messages"] = "1"
        rows = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
        topic = CreatableTopic(name=self.name, num_partitions=1, replication_factor=1, assignments=[], configs=rows)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(TIMEOUT_S * 1000))
        # A lost answer leaves it open whether there is one now, with configurations of ours in any case.
        self.until(lambda: self.ask(request, 5).topics[0].error_code, ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        self.generation += 1
        self.sent = list(self.late)

    def write(self) -> None:
        self.value += 1
        key, value = (
            b"key-%d" % self.chance.randrange(KEYS),
            b"%s/%d/%d"
            % (
                self.name.encode(),
                self.generation,
                self.value,
            ),
        )
        request = produce_request(
            self.name, batch_of([value], key=key, timestamp_ms=time.time_ns() // 1_000_000), acks=-1
        )
        offset = -1

        def once() -> int:
            nonlocal offset
            try:
                answer = self.wire.ask(request, PRODUCE_VERSION).responses[0].partition_responses[0]
            except LOST:
                return ErrorCode.NONE
            offset = answer.base_offset
            return int(answer.error_code)

        self.until(once, ErrorCode.NONE)
        self.sent.append(Sent(offset, key, value))

    def check(self) -> None:
        """Every acknowledged record is there, in order; of a compacted topic the latest of each key."""
        records = self.read()
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets)), f"{self.name}: out of order"
        ours = {each.value: each for each in self.sent}
        assert all(record.value in ours for record in records), f"{self.name}: records of an earlier topic"
        found = {record.value: record.offset for record in records}
        latest = {record.key: record.offset for record in records}
        for each in self.sent:
            if each.offset < 0:
                continue
            if self.policy == "delete":
                assert found.get(each.value) == each.offset, f"{self.name}: {each} is lost"
            else:
                assert latest.get(each.key, -1) >= each.offset, f"{self.name}: {each} is lost"
                assert found.get(each.value, each.offset) == each.offset, f"{self.name}: {each} has moved"

    def read(self) -> list[Record]:
        records: list[Record] = []
        offset = 0
        while True:
            data: Any = None

            def once(wanted: int = offset) -> int:
                nonlocal data
                answer = self.ask(fetch_request(self.name, wanted), FETCH_VERSION)
                (data,) = answer.responses[0].partitions
                return int(data.error_code)

            self.until(once, ErrorCode.NONE)
            body = bytes(data.records or b"")
            if not body:
                assert offset == data.high_watermark
                return records
            for position, header in iter_batch_headers(body, allow_truncated_tail=True):
                records += [each for each in iter_records(body, position) if each.offset >= offset]
                following = header.next_offset
            offset = following

    def delete(self) -> None:
        request = DeleteTopicsRequest(topic_names=[self.name], timeout_ms=int(TIMEOUT_S * 1000))
        self.until(
            lambda: self.ask(request, 5).responses[0].error_code, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    def delete_beside_a_flush(self) -> None:
        """A few records are on their way on another connection, each with an fsync or a roll.

        A produce request names its topic and tells no id: some may run once there is another topic of the name.
        """
        late = Sent(-1, b"key", (b"%s/%d/late" % (self.name.encode(), self.generation)).ljust(LATE_BYTES))
        self.late.append(late)
        batch = batch_of([late.value], key=late.key, timestamp_ms=time.time_ns() // 1_000_000)
        with Wire(*self.wire.address, timeout_s=TIMEOUT_S) as other:
            try:
                for _ in range(self.chance.randrange(1, 12)):
                    other.send(produce_request(self.name, batch, acks=-1), PRODUCE_VERSION)
            except LOST:
                pass
            self.delete()

    def delete_at_a_swap(self) -> None:
        """As soon as a compaction has made a file, or after a while."""
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline and not self.is_being_compacted():
            self.write()
        self.delete()

    def is_being_compacted(self) -> bool:
        try:
            return any(name.endswith((".cleaned", ".swap")) for name in os.listdir(self.folder))  # noqa: PTH208 - names are wanted, and quickly
        except FileNotFoundError:
            return False

    def ask(self, request: Any, version: int) -> Any:
        """As often as the broker dies over it."""
        answers: list[Any] = []

        def once() -> bool:
            try:
                answers.append(self.wire.ask(request, version))
            except LOST:
                return False
            return True

        wait_until(once, TIMEOUT_S, f"no answer to {type(request).__name__}")
        return answers[0]

    def until(self, once: Callable[[], int], *good: ErrorCode) -> None:
        """Until the answer is good; what it may be meanwhile is retriable and blames no disk."""
        seen: list[int] = []

        def is_good() -> bool:
            seen.append(once())
            assert seen[-1] != ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: the disk is blamed"
            return seen[-1] in good

        wait_until(is_good, TIMEOUT_S, lambda: f"{self.name}: {[ErrorCode(code).name for code in seen[-3:]]}")


class Soak:
    """The writers, and what they met."""

    def __init__(self, broker: KavkaProcess, seed: int) -> None:
        self.broker = broker
        self.chance = random.Random(seed)
        self.stories = [
            [
                Story(broker, f"writer{writer}-{number}", random.Random(f"{seed} {writer} {number}"))
                for number in range(NAMES_A_WRITER)
            ]
            for writer in range(WRITERS)
        ]
        self.ends_at = time.monotonic() + SECONDS
        self.failures: list[BaseException] = []
        self.threads = [threading.Thread(target=self.write, args=(stories,)) for stories in self.stories]

    def write(self, stories: list[Story]) -> None:
        try:
            while time.monotonic() < self.ends_at and not self.failures:
                random.choice(stories).live()
        except BaseException as failure:  # noqa: BLE001 - raised again by the test
            self.failures.append(failure)

    def run(self) -> None:
        for thread in self.threads:
            thread.start()
        next_kill = time.monotonic() + 10
        while any(thread.is_alive() for thread in self.threads):
            self.threads[0].join(0.5)
            self.broker.process.check_alive()
            if time.monotonic() > next_kill:
                self.kill()
                next_kill = time.monotonic() + self.chance.uniform(5, 15)
        for failure in self.failures:
            raise failure

    def kill(self) -> None:
        self.refuse_errors()
        self.broker.kill()
        self.broker.start()

    def refuse_errors(self) -> None:
        bad = [line for line in self.broker.process.log_text().splitlines() if _is_error(line)]
        assert bad == [], "\n".join(bad)


def _is_error(line: str) -> bool:
    return "level=ERROR" in line or "level=CRITICAL" in line


def folders(broker: KavkaProcess) -> list[str]:
    return [path.name for path in Path(broker.log_dir).glob("writer*")]


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_topics_made_written_compacted_and_deleted_at_random_leave_a_sound_broker(tmp_path: Path) -> None:
    seed = int(os.environ.get("SOAK_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
    print(f"SOAK_SEED={seed}")
    with KavkaProcess(tmp_path, SETTINGS) as broker:
        soak = Soak(broker, seed)
        soak.run()
        soak.refuse_errors()
        wait_until(lambda: folders(broker) == [], TIMEOUT_S, lambda: f"folders stay: {folders(broker)}")
        lived = sum(story.generation for stories in soak.stories for story in stories)
        rounds = broker.process.log_text().count('"log compacted"')
        print(f"{lived} topics lived; {rounds} rounds of compaction since the last kill")
        assert lived > WRITERS
