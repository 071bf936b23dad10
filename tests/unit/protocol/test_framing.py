"""A stream of frames is cut the same however it arrives, and lying sizes cost nothing."""

import random
import struct

import pytest

from kavka.protocol.errors import DecodeError
from kavka.protocol.framing import ARENA_SIZE_BYTES, FIRST_BUFFER_BYTES, Arena, FrameReader


def feed(reader: FrameReader, arena: Arena, data: bytes, chunk: int) -> list[bytes]:
    """Everything that the reader makes of `data`, received `chunk` bytes at a time at most."""
    found: list[bytes] = []
    position = 0
    while position < len(data) and reader.failure is None:
        own = reader.buffer is not None
        space = reader.own_space() if own else arena.space()
        size = min(chunk, len(space), len(data) - position)
        space[:size] = data[position : position + size]
        position += size
        if own:
            del space
            frame = reader.arrived_own(size)
            if frame is not None:
                found.append(bytes(frame))
        else:
            frames = reader.arrived(space[:size])
            if frames:
                arena.keep(size)
            found.extend(bytes(frame) for frame in frames)
    return found


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 7, 64, 1000, 65536, 10**6])
def test_frames_are_the_same_however_they_arrive(chunk: int) -> None:
    rng = random.Random(chunk)
    bodies = [rng.randbytes(rng.choice([0, 1, 10, 200, 5_000, 70_000])) for _ in range(30)]

    assert feed(FrameReader(100_000), Arena(), framed(*bodies), chunk) == bodies


def test_frames_stay_as_they_were_when_more_arrives() -> None:
    arena, reader = Arena(), FrameReader(1000)
    kept = []
    for number in range(2000):
        space = arena.space()
        data = framed(number.to_bytes(100, "big"))
        space[: len(data)] = data
        kept += reader.arrived(space[: len(data)])
        arena.keep(len(data))

    assert [int.from_bytes(frame, "big") for frame in kept] == list(range(2000))


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_size_beyond_the_limit_is_refused_and_the_frames_before_it_are_not(size: int, chunk: int) -> None:
    reader = FrameReader(1000)

    frames = feed(reader, Arena(), framed(b"first") + framed(b"second") + struct.pack(">i", size) + b"x" * 100, chunk)

    assert [bytes(frame) for frame in frames] == [b"first", b"second"]
    assert isinstance(reader.failure, DecodeError)
    assert str(size) in str(reader.failure)


def test_a_large_claim_does_not_take_memory_before_the_bytes_arrive() -> None:
    reader = FrameReader(2**31 - 1)
    reader.arrived(memoryview(struct.pack(">i", 2**31 - 1) + b"x" * 1000))

    assert len(reader.own_space()) <= FIRST_BUFFER_BYTES


def test_the_arena_always_offers_room() -> None:
    arena = Arena()
    for _ in range(100):
        space = arena.space()
        assert 0 < len(space) <= ARENA_SIZE_BYTES
        arena.keep(min(len(space), 9_000))
