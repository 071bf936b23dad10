"""A load whose every record is accounted for: numbered records, copied exactly once, while brokers come and go.

A producer process numbers records into one topic, `exactly_once_copier` copies them to another one in transactions, and
the copier's committed offsets are read all the time.
"""

import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.records.batch import iter_records
from kavka.protocol.records.header import iter_batch_headers
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import Process, wait_until
from tests.support.producing import REPOSITORY, Producing
from tests.support.wire import FETCH_VERSION, Wire, fetch_request

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
        """End it, with brokers that all run, and hold what is there against what was sent and told.

        librdkafka doubles records where it begins another producer epoch (its issue 4953): for all partitions, though
        it does not know yet what became of the last ones, because the new leader of one got later requests first. Of
        that no broker can know; in one epoch none may be there twice.
        """
        sent = self._producer.finish()
        assert self._producer.errors() == []
        source = {
            index: written(self._bootstrap, index, self._producer.acknowledged_end(index))
            for index in range(PARTITIONS)
        }
        self._wait_for_all({index: len(rows) for index, rows in source.items()})
        self._stack.close()
        assert self._offsets.went_back == []
        copied = read_committed(self._bootstrap, {index: len(rows) for index, rows in source.items()})
        different = 0
        for index, rows in source.items():
            assert len(set(rows)) == len(rows), f"doubled in partition {index}"
            firsts = list(dict.fromkeys(row.value for row in rows))
            assert firsts == [f"n:{index}:{number}" for number in range(len(firsts))]
            assert copied[index] == [f"{row.value}!" for row in rows]
            different += len(firsts)
        assert different == sent

    def _wait_for_all(self, ends: dict[int, int]) -> None:
        """Until all of the source is copied; as long as that takes, while it goes on."""
        seen = self._offsets.seen

        def left() -> int:
            return sum(max(end - seen[index], 0) for index, end in ends.items())

        def has_fewer(before: int) -> bool:
            return left() < before

        while before := left():
            wait_until(partial(has_fewer, before), TIMEOUT_S, self._tell)

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


class Row(NamedTuple):
    """A record of the source."""

    value: str
    producer_id: int
    producer_epoch: int


def written(bootstrap: str, index: int, end: int) -> list[Row]:
    """All records of one of the source's partitions, once those below offset `end` are to be seen."""
    rows: list[Row] = []
    wait_until(
        partial(_read_on, bootstrap, index, end, rows),
        TIMEOUT_S,
        lambda: f"partition {index} ends at {len(rows)} instead of {end}",
    )
    return rows


def _read_on(bootstrap: str, index: int, end: int, rows: list[Row]) -> bool:
    """Whether its leader, as a broker knows it, shows nothing more, and all below `end`."""
    host, _, port = bootstrap.partition(",")[0].rpartition(":")
    with Wire(host, int(port)) as wire:
        told = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=SOURCE)]), 8)
    leaders = {each.partition_index: each.leader_id for each in told.topics[0].partitions}
    addresses = [(each.host, each.port) for each in told.brokers if each.node_id == leaders.get(index)]
    if not addresses:
        return False
    with Wire(*addresses[0]) as wire:
        while True:
            (answer,) = wire.ask(fetch_request(SOURCE, len(rows), partition=index), FETCH_VERSION).responses
            code, data = answer.partitions[0].error_code, bytes(answer.partitions[0].records or b"")
            if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                # Its leader has just changed.
                return False
            assert code == ErrorCode.NONE, answer
            if not data:
                return len(rows) >= end
            for position, header in iter_batch_headers(data, allow_truncated_tail=True):
                for record in iter_records(data, position):
                    if record.offset >= len(rows):
                        value = bytes(record.value or b"").decode()
                        rows.append(Row(value, header.producer_id, header.producer_epoch))


def read_committed(bootstrap: str, counts: Mapping[int, int]) -> dict[int, list[str]]:
    """By partition: the values of all copies that were committed, once there are so many."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 2}
    # Whoever reads what is committed is told that the end lies before the markers that are still on their way.
    ends = Consumer({**settings, "isolation.level": "read_uncommitted"})
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    found: dict[int, list[str]] = {}
    for index, count in counts.items():
        values = found[index] = []
        end = wait_until(partial(_end_of, ends, index), TIMEOUT_S, f"partition {index} has no end") if count else 0
        consumer.assign([TopicPartition(TARGET, index, 0)])
        wait_until(
            partial(_take, consumer, index, values, count, end),
            TIMEOUT_S,
            partial(_tell_of_missing, index, values, count),
        )
    consumer.close()
    ends.close()
    return found


def _take(consumer: Consumer, index: int, values: list[str], count: int, end: int) -> bool:
    """Whether all is read: so many, and all below `end`."""
    for message in consumer.consume(500, 0.2):
        assert message.error() is None, message.error()
        values.append((message.value() or b"").decode())
    (reached,) = consumer.position([TopicPartition(TARGET, index)])
    return len(values) >= count and max(reached.offset, 0) >= end


def _tell_of_missing(index: int, values: list[str], count: int) -> str:
    return f"{len(values)} of {count} copies are committed in partition {index}"


def _end_of(consumer: Consumer, index: int) -> int | None:
    try:
        return consumer.get_watermark_offsets(TopicPartition(TARGET, index), 5)[1]
    except KafkaException:
        # Its leader has just changed.
        return None
