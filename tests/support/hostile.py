"""Hostile clients: each function is one way to misbehave, on connections of its own, driven by a seeded dice.

`REJECTED` ones are answered by closing the connection, counted and logged once each; they return how many rejections
they have earned. The others return 0: they get an error of the protocol, or nothing.
"""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Callable

from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.record import PackedHeaders, Record
from tests.support.processes import let_pass
from tests.support.wire import (
    FETCH_VERSION,
    FRAMED_BY_HAND,
    PRODUCE_VERSION,
    Wire,
    batch_of,
    fetch_request,
    frame,
    produce_request,
)

MAX_FRAME_BYTES = 104_857_600
BOMB_BYTES = 256 * 1024 * 1024
BOMB_HEADERS = 50_000
Hostility = Callable[["Target", random.Random], int]


class Target:
    """Where to misbehave, and with what: topics that exist, and bombs made beforehand."""

    def __init__(self, host: str, port: int, topics: list[str], bombs: list[bytes]) -> None:
        self.host = host
        self.port = port
        self.topics = topics
        self.bombs = bombs
        self.held: list[Wire] = []

    def wire(self, **options: float) -> Wire:
        return Wire(
            self.host, self.port, timeout_s=60, receive_buffer_bytes=int(options.get("receive_buffer_bytes", 0))
        )

    def rejects(self, data: bytes) -> int:
        """Send bytes that the broker must refuse by hanging up."""
        with self.wire() as wire:
            with contextlib.suppress(ConnectionError):
                wire.socket.sendall(data)
            assert wire.closed_by_peer(), f"not refused: {data[:64]!r}"
        return 1


def random_bytes(target: Target, dice: random.Random) -> int:
    # Its length is negative: whatever else came could be a frame that is still on its way.
    return target.rejects(b"\xff" + dice.randbytes(dice.randrange(3, 5000)))


def random_frame(target: Target, dice: random.Random) -> int:
    # A key that is not served, so that no dice ever throws a good request.
    body = b"\x7f" + dice.randbytes(dice.randrange(7, 3000))
    return target.rejects(struct.pack(">i", len(body)) + body)


def oversized(target: Target, dice: random.Random) -> int:
    return target.rejects(struct.pack(">i", dice.randrange(MAX_FRAME_BYTES + 1, 2**31)))


def short_frame(target: Target, dice: random.Random) -> int:
    size = dice.randrange(8)
    return target.rejects(struct.pack(">i", size) + bytes(size))


def truncated(target: Target, dice: random.Random) -> int:
    whole = _good_request(target, dice)
    cut = dice.randrange(12, len(whole) - 1)
    return target.rejects(struct.pack(">i", cut - 4) + whole[4:cut])


def lying_lengths(target: Target, dice: random.Random) -> int:
    """A Metadata request for two billion topics, or with a topic of two gigabytes."""
    head = encode_request_header(3, 5, 1, "liar")
    body = head + dice.choice([struct.pack(">i", 2**31 - 1), struct.pack(">ih", 1, 32767), struct.pack(">i", -7)])
    return target.rejects(struct.pack(">i", len(body)) + body)


def unknown_versions(target: Target, dice: random.Random) -> int:
    header = struct.pack(">hhih", dice.choice([0, 1, 3, 19]), dice.randrange(100, 30000), 1, -1)
    return target.rejects(struct.pack(">i", len(header)) + header)


def unknown_version_of_api_versions(target: Target, dice: random.Random) -> int:
    with target.wire() as wire:
        header = struct.pack(">hhihB", 18, dice.randrange(100, 30000), 77, -1, 0)
        wire.socket.sendall(struct.pack(">i", len(header)) + header)
        answer = wire.receive_frame()
        assert struct.unpack_from(">ih", answer) == (77, 35)
    return 0


def wrong_crc(target: Target, dice: random.Random) -> int:
    batch = bytearray(_batch(dice))
    batch[dice.randrange(21, len(batch))] ^= 1 << dice.randrange(8)
    _produce(target, dice, bytes(batch))
    return 0


def wrong_header_with_right_crc(target: Target, dice: random.Random) -> int:
    batch = bytearray(_batch(dice))
    place = dice.choice([(8, 4), (16, 1), (21, 2), (23, 4), (57, 4)])
    batch[place[0] : sum(place)] = dice.randbytes(place[1])
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    _produce(target, dice, bytes(batch))
    return 0


def garbage_records_with_right_crc(target: Target, dice: random.Random) -> int:
    batch = bytearray(_batch(dice))
    batch[61:] = dice.randbytes(len(batch) - 61)
    batch[22] = dice.choice([0, 1, 2, 3, 4])
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    # Where records are not looked into, such a batch is taken in; here they all are.
    _produce(target, dice, bytes(batch))
    return 0


def bomb(target: Target, dice: random.Random) -> int:
    _produce(target, dice, dice.choice(target.bombs))
    return 0


def bombs_behind_a_good_produce(target: Target, dice: random.Random) -> int:
    """Short as they are, and like the request before them: only what they unpack to is large."""
    good = produce_request(dice.choice(target.topics), _batch(dice))
    with target.wire() as wire:
        assert len(wire.ask(good, PRODUCE_VERSION).responses) == 1
        topic = good.topic_data[0].name
        wire.socket.sendall(frame(produce_request(topic, header_bomb(BOMB_HEADERS)), PRODUCE_VERSION) * 10)
        for _ in range(10):
            wire.receive_frame()
    return 0


def half_open(target: Target, dice: random.Random) -> int:
    """A connection that begins a frame and says no more."""
    wire = target.wire()
    wire.socket.sendall(struct.pack(">i", dice.randrange(1000, MAX_FRAME_BYTES)) + dice.randbytes(500))
    _hold(target, dice, wire)
    return 0


def reset(target: Target, dice: random.Random) -> int:
    """Ask for much and break the connection."""
    with target.wire() as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.socket.sendall(_large_fetch(dice) * dice.randrange(1, 20))
    return 0


def never_reads(target: Target, dice: random.Random) -> int:
    """Fetch megabytes and take none of them."""
    wire = target.wire(receive_buffer_bytes=4096)
    wire.socket.sendall(_large_fetch(dice) * 20)
    _hold(target, dice, wire)
    return 0


def thousand_requests_never_read(target: Target, dice: random.Random) -> int:
    wire = target.wire(receive_buffer_bytes=4096)
    request = frame(dice.choice([ApiVersionsRequest(), MetadataRequest(topics=None)]), 1)
    wire.socket.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        wire.socket.sendall(request * 1000)
    _hold(target, dice, wire)
    return 0


def byte_by_byte(target: Target, dice: random.Random) -> int:
    """Slow, but right: it gets its answer."""
    request = ApiVersionsRequest()
    with target.wire() as wire:
        for byte in frame(request, 0):
            wire.socket.sendall(bytes([byte]))
            let_pass(0.0005)
        assert wire.answer(request, 0, correlation_id=FRAMED_BY_HAND).error_code == 0
    return 0


HOSTILITIES: list[Hostility] = [
    random_bytes,
    random_frame,
    oversized,
    short_frame,
    truncated,
    lying_lengths,
    unknown_versions,
    unknown_version_of_api_versions,
    wrong_crc,
    wrong_header_with_right_crc,
    garbage_records_with_right_crc,
    bomb,
    bombs_behind_a_good_produce,
    half_open,
    reset,
    never_reads,
    thousand_requests_never_read,
    byte_by_byte,
]
LARGE_TOPIC = "large"
MAX_HELD = 40


def bombs() -> list[bytes]:
    """A quarter of a gigabyte of zeros in a batch of less than a megabyte, once for each codec that packs so well."""
    made = []
    for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY):
        # Snappy and LZ4 pack zeros 20 and 250 times: their bombs are as large as a batch may be.
        size = {Codec.GZIP: BOMB_BYTES, Codec.ZSTD: BOMB_BYTES, Codec.LZ4: BOMB_BYTES // 2, Codec.SNAPPY: 15 << 20}[
            codec
        ]
        batch = batch_of([bytes(size)], timestamp_ms=time.time_ns() // 1_000_000, key=b"key", codec=codec)
        assert len(batch) < 1_000_000, (codec, len(batch))
        made.append(batch)
    return made


def header_bomb(count: int, codec: Codec = Codec.ZSTD) -> bytes:
    """A batch of one record with so many headers, two bytes each, of which the codec leaves next to nothing."""
    packed = bytearray()
    size = count << 1
    while size >= 0x80:
        packed.append(size & 0x7F | 0x80)
        size >>= 7
    packed.append(size)
    headers = PackedHeaders(bytes(packed) + b"\0\1" * count)
    return build_batch([Record(0, time.time_ns() // 1_000_000, b"key", b"value", headers)], codec=codec)


def _produce(target: Target, dice: random.Random, batch: bytes) -> None:
    """The broker answers, whatever it answers."""
    with target.wire() as wire:
        request = produce_request(dice.choice(target.topics), batch, acks=dice.choice([1, -1]))
        answer = wire.ask(request, PRODUCE_VERSION)
        assert len(answer.responses[0].partition_responses) == 1


def _good_request(target: Target, dice: random.Random) -> bytes:
    return dice.choice(
        [
            frame(produce_request(dice.choice(target.topics), _batch(dice)), PRODUCE_VERSION),
            frame(fetch_request(dice.choice(target.topics), 0), FETCH_VERSION),
        ]
    )


def _large_fetch(dice: random.Random) -> bytes:
    return frame(fetch_request(LARGE_TOPIC, 0, max_bytes=dice.choice([1 << 20, 8 << 20, 64 << 20])), FETCH_VERSION)


def _batch(dice: random.Random) -> bytes:
    values = [dice.randbytes(dice.randrange(100)) for _ in range(dice.randrange(1, 20))]
    return batch_of(values, timestamp_ms=time.time_ns() // 1_000_000, key=b"key", codec=dice.randrange(5))


def _hold(target: Target, dice: random.Random, wire: Wire) -> None:
    target.held.append(wire)
    if len(target.held) > MAX_HELD:
        target.held.pop(dice.randrange(len(target.held))).close()
