"""A load whose every record is accounted for: numbered records, copied exactly once, while brokers come and go.

A producer process numbers records into one topic, `exactly_once_copier` copies them to another one in transactions, and
the copier's committed offsets are read all the time.
"""

import sys
import threading
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import Process, wait_until
from tests.support.producing import REPOSITORY, Producing

SOURCE: Final = "visits"
TARGET: Final = "copies"
GROUP: Final = "copiers"
TRANSACTION: Final = "copier"
TIMEOUT_S: Final = 120.0


class ExactCopies:
    """`with ExactCopies(tmp_path, bootstrap) as copies:` is that load, until `finish`. The topics must be there.

    Owned by one thread. What a failed wait has to say ends with the copier's log.
    """

    def __init__(self, directory: Path, bootstrap: str, *, rate: int = 200) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._rate = rate
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        arguments = [self._bootstrap, SOURCE, TARGET, GROUP, TRANSACTION]
        command = [sys.executable, "-m", "tests.support.exactly_once_copier", *arguments]
        log = self._directory / "copier.log"
        with ExitStack() as stack:
            producer = Producing(self._directory, self._bootstrap, SOURCE, "n", "confluent", rate=self._rate)
            self._producer = stack.enter_context(producer)
            self._copier = stack.enter_context(Process(command, log, env={"PYTHONPATH": str(REPOSITORY)}))
            self._offsets = stack.enter_context(Offsets(self._bootstrap))
            self._copier.wait_for_log("COPIED", TIMEOUT_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def wait_for_more(self) -> None:
        """Until transactions have been committed that began after this call."""
        before = self._copier.log_text().count("COPIED")
        wait_until(lambda: self._copier.log_text().count("COPIED") > before + 1, TIMEOUT_S, self._tell)

    def finish(self) -> None:
        """End it, with brokers that all run, and hold what is there against what was sent and told."""
        sent = self._producer.finish()
        assert self._producer.errors() == []
        wait_until(lambda: sum(self._offsets.seen.values()) >= sent, TIMEOUT_S, self._tell)
        self._stack.close()
        assert self._offsets.went_back == []
        copied = read_committed(self._bootstrap)
        assert sum(map(len, copied.values())) == sent
        for index, values in copied.items():
            assert values == [f"n:{index}:{number}!" for number in range(len(values))]

    def _tell(self) -> str:
        return f"nothing is copied, offsets {dict(self._offsets.seen)}:\n{self._copier.log_text()[-3000:]}"


class Offsets:
    """Reads the copiers' committed offsets again and again; `went_back` has what must not be."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: dict[int, int] = defaultdict(int)
        self.went_back: list[str] = []
        self._asker = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 2})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="offsets", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._asker.close()

    def look(self) -> None:
        asked = [TopicPartition(SOURCE, index) for index in range(PARTITIONS)]
        for found in self._asker.committed(asked, 5):
            if max(found.offset, 0) < self.seen[found.partition]:
                self.went_back.append(f"{found} after {self.seen[found.partition]}")
            self.seen[found.partition] = max(found.offset, 0)

    def _run(self) -> None:
        while not self._is_over.wait(0.2):
            try:
                self.look()
            except KafkaException:
                # The coordinator is on its way.
                continue


def read_committed(bootstrap: str) -> dict[int, list[str]]:
    """By partition: the values of all copies that were committed."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed", "log_level": 2}
    )
    found: dict[int, list[str]] = {}
    for index in range(PARTITIONS):
        values = found[index] = []
        end = wait_until(partial(_end_of, consumer, index), TIMEOUT_S, f"partition {index} has no end")
        consumer.assign([TopicPartition(TARGET, index, 0)])
        position = 0
        while position < end:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
            (reached,) = consumer.position([TopicPartition(TARGET, index)])
            position = max(position, reached.offset)
    consumer.close()
    return found


def _end_of(consumer: Consumer, index: int) -> int | None:
    try:
        return consumer.get_watermark_offsets(TopicPartition(TARGET, index), 5)[1]
    except KafkaException:
        # Its leader has just changed.
        return None
