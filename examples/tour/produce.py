"""Step 1: one record, put into a produce frame by hand, byte for byte: `python -m examples.tour.produce`."""

import struct
from collections.abc import Iterable
from typing import Final

from examples.tour.connection import NEW_YEAR_MS, Connection
from kavka.protocol.records.crc import crc32c

TOPIC: Final = "colours"
KEY: Final = b"sky"
VALUE: Final = b"blue"

Field = tuple[str, bytes]
"""What some bytes mean, and the bytes."""


def record() -> list[Field]:
    """One record. Its numbers are varints: a zigzagged integer in as few bytes as it needs."""
    fields = [
        ("attributes (unused)", b"\0"),
        ("its time: 0 ms after the batch's first", varint(0)),
        ("its offset: 0 after the batch's first", varint(0)),
        (f"the key has {len(KEY)} bytes", varint(len(KEY))),
        (f"{KEY.decode()!r}", KEY),
        (f"the value has {len(VALUE)} bytes", varint(len(VALUE))),
        (f"{VALUE.decode()!r}", VALUE),
        ("no headers", varint(0)),
    ]
    size = len(joined(fields))
    return [(f"RECORD of {size} bytes", varint(size)), *fields]


def batch() -> list[Field]:
    """A batch of that one record: what the broker stores and consumers get, in this very form."""
    checked = [
        ("attributes: no compression, no transaction", i16(0)),
        ("the last record's offset is the first's + 0", i32(0)),
        ("time of the first record (2026-01-01, ms)", i64(NEW_YEAR_MS)),
        ("time of the latest record", i64(NEW_YEAR_MS)),
        ("producer id: none", i64(-1)),
        ("producer epoch: none", i16(-1)),
        ("sequence number: none", i32(-1)),
        ("one record", i32(1)),
        *record(),
    ]
    behind_length = [
        ("leader epoch: the broker fills it in", i32(-1)),
        ("format of the batch (magic): 2", b"\2"),
        ("CRC-32C of all that follows", struct.pack(">I", crc32c(joined(checked)))),
        *checked,
    ]
    size = len(joined(behind_length))
    return [("BATCH, base offset: the broker fills it in", i64(0)), (f"{size} bytes follow", i32(size)), *behind_length]


def request() -> list[Field]:
    """A Produce request, version 8: its header and its body."""
    content = batch()
    size = len(joined(content))
    return [
        ("REQUEST HEADER, API key 0: Produce", i16(0)),
        ("version 8", i16(8)),
        ("correlation id: the answer repeats it", i32(7)),
        ("client id 'tour', behind its length", string("tour")),
        ("BODY, no transactional id", i16(-1)),
        ("acks -1: answer when all replicas have it", i16(-1)),
        ("timeout 30,000 ms", i32(30_000)),
        ("one topic", i32(1)),
        (f"{TOPIC!r}", string(TOPIC)),
        ("one partition", i32(1)),
        ("partition 0", i32(0)),
        (f"{size} bytes of batches", i32(size)),
        *content,
    ]


def answer_fields(data: bytes) -> list[Field]:
    """The answer, cut up at the places where version 8 has its fields."""
    names_and_sizes = [
        ("RESPONSE HEADER, correlation id", 4),
        ("BODY, one topic", 4),
        (f"{TOPIC!r}", 2 + len(TOPIC)),
        ("one partition", 4),
        ("partition 0", 4),
        ("error code 0: NONE", 2),
        ("base offset: the record is number 0", 8),
        ("append time: -1, the producer's counts", 8),
        ("the log starts at offset 0", 8),
        ("no errors of single records", 4),
        ("no error message", 2),
        ("wait 0 ms before the next request", 4),
    ]
    fields, position = [], 0
    for name, size in names_and_sizes:
        fields.append((name, data[position : position + size]))
        position += size
    assert position == len(data), "the answer has another form: an error?"
    return fields


def shown(fields: Iterable[Field]) -> str:
    """Bytes in hex with their meaning, a line for each field and one more where a part begins."""
    lines = []
    for meaning, data in fields:
        head, comma, rest = meaning.partition(", ")
        if head.isupper() and comma:
            lines += ["", f"{head.lower()}"]
            meaning = rest
        elif meaning.startswith("RECORD"):
            lines += ["", "record"]
            meaning = meaning.replace("RECORD of ", "") + " follow"
        lines.append(f"  {data.hex(' '):<28}  {meaning}")
    return "\n".join(lines)


def joined(fields: Iterable[Field]) -> bytes:
    return b"".join(data for _, data in fields)


def varint(value: int) -> bytes:
    """Zigzag (0, -1, 1, -2 become 0, 1, 2, 3), and then seven bits a byte. All of ours fit in one byte."""
    zigzagged = value << 1 if value >= 0 else (-value << 1) - 1
    assert zigzagged < 0x80
    return bytes([zigzagged])


def i16(value: int) -> bytes:
    return struct.pack(">h", value)


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def string(text: str) -> bytes:
    return i16(len(text)) + text.encode()


def main() -> None:
    fields = request()
    with Connection() as connection:
        connection.make_topic(TOPIC)
        connection.send_frame(joined(fields))
        answer = connection.receive_frame()
    print("To the broker:")
    print(shown([(f"FRAME, {len(joined(fields))} bytes follow", i32(len(joined(fields)))), *fields]))
    print()
    print("From the broker:")
    print(shown([(f"FRAME, {len(answer)} bytes follow", i32(len(answer))), *answer_fields(answer)]))


if __name__ == "__main__":
    main()
