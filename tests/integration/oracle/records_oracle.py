"""Kafka's own record classes as oracle: commands for tests/java/RecordsOracle.java, and its answers parsed."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from kavka.protocol.records.batch import Codec, Record, TimestampType
from tests.support.java import run_java
from tests.support.java_classes import SOURCES

SOURCE = SOURCES / "RecordsOracle.java"
TYPE_NAMES = {"CreateTime": TimestampType.CREATE, "LogAppendTime": TimestampType.LOG_APPEND}


@dataclass(frozen=True)
class Case:
    """A batch to be written by either side."""

    records: list[Record]
    magic: int = 2
    codec: Codec = Codec.NONE
    log_append_time_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    leader_epoch: int = -1
    delete_horizon_ms: int = -1

    @property
    def name(self) -> str:
        parts = [f"magic{self.magic}", self.codec.name.lower()]
        parts += ["append"] if self.log_append_time_ms >= 0 else []
        parts += ["transactional"] if self.transactional else []
        parts += ["horizon"] if self.delete_horizon_ms >= 0 else []
        return "-".join(parts)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND if self.log_append_time_ms >= 0 else TimestampType.CREATE

    def expected(self) -> list[Record]:
        """What reading must give: the magic's losses and the broker's timestamp applied."""
        records = self.records
        if self.log_append_time_ms >= 0:
            records = [record._replace(timestamp_ms=self.log_append_time_ms) for record in records]
        if self.magic == 0:
            records = [record._replace(timestamp_ms=-1) for record in records]
        if self.magic < 2:
            records = [record._replace(headers=()) for record in records]
        return records

    def command(self, path: Path) -> str:
        """The `write` command for the oracle."""
        kind = "LogAppendTime" if self.timestamp_type else "CreateTime"
        records = self.records if self.magic == 2 else [record._replace(headers=()) for record in self.records]
        words: list[object] = [path, self.magic, self.codec.name.lower(), kind, records[0].offset]
        words += [self.log_append_time_ms, self.producer_id, self.producer_epoch, self.base_sequence]
        words += [str(self.transactional).lower(), self.leader_epoch, self.delete_horizon_ms]
        return "\n".join(["write " + " ".join(map(str, words)), *map(record_line, records), "end"])


@dataclass
class Answer:
    """What Kafka read from one file."""

    batches: list[list[str]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    error: str | None = None


def ask(commands: Iterable[str]) -> list[Answer]:
    """Run all commands in one JVM (a second to start); an Answer for each `read`, in order."""
    text = run_java(str(SOURCE), [], bundle="kafka-3.9", text_in="\n".join(commands) + "\n")
    answers: list[Answer] = []
    current = Answer()
    for line in text.splitlines():
        kind, *words = line.split(" ")
        if kind == "batch":
            current.batches.append(words)
        elif kind == "r":
            current.records.append(_record(words))
        elif kind == "error":
            current.error = words[0]
        elif kind == "end":
            answers.append(current)
            current = Answer()
    return answers


def cases(seed: int = 7) -> list[Case]:
    """Every magic with every codec it can carry, plus what only some have."""
    rng = random.Random(seed)
    made = []
    for magic in (0, 1, 2):
        for codec in Codec:
            if codec == Codec.ZSTD and magic < 2:
                continue
            plain = Case(some_records(rng, 40, with_headers=magic == 2), magic=magic, codec=codec)
            made.append(plain)
            if magic >= 1:
                made.append(replace(plain, log_append_time_ms=1_800_000_000_123))
    transactional = Case(
        some_records(rng, 3, with_headers=True),
        producer_id=2**40 + 5,
        producer_epoch=32767,
        base_sequence=2**31 - 2,
        transactional=True,
        leader_epoch=12,
    )
    horizon = Case(some_records(rng, 5, with_headers=True), delete_horizon_ms=1_700_000_000_000)
    return [*made, transactional, horizon]


def some_records(rng: random.Random, count: int, *, with_headers: bool) -> list[Record]:
    """Records with nulls, empty and large fields, timestamps in no order, from an offset beyond 32 bits."""
    base_offset = 2**33 + rng.randrange(1000)
    records = []
    for index in range(count):
        headers = tuple((f"h\u00e9{number}", rng.choice([None, b"", b"x" * 70])) for number in range(rng.randrange(3)))
        record = Record(
            offset=base_offset + index,
            timestamp_ms=1_700_000_000_000 + rng.randrange(-(10**9), 10**9),
            key=rng.choice([None, b"", rng.randbytes(9)]),
            value=rng.choice([None, b"", b"abc" * 50, rng.randbytes(9000)]),
            headers=headers if with_headers else (),
        )
        records.append(record)
    return records


def record_line(record: Record) -> str:
    """One record as the oracle reads and writes it."""
    words = [str(record.offset), str(record.timestamp_ms), _text(record.key), _text(record.value)]
    for key, value in record.headers:
        words += [_text(key.encode()), _text(value)]
    return "r " + " ".join(words)


def _text(value: bytes | None) -> str:
    return "n" if value is None else "x" + value.hex()


def _record(words: list[str]) -> Record:
    offset, timestamp_ms, *fields = words
    key, value, *header_fields = [None if word == "n" else bytes.fromhex(word[1:]) for word in fields]
    headers = tuple(
        ((name or b"").decode(), content) for name, content in zip(header_fields[::2], header_fields[1::2], strict=True)
    )
    return Record(int(offset), int(timestamp_ms), key, value, headers)
