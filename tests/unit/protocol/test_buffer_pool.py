"""Buffers are used again when, and only when, nobody looks at them."""

import random
import threading

from kavka.protocol.buffer_pool import LARGEST_KEPT_BYTES, BufferPool
from kavka.protocol.framing import Arena, FrameReader
from tests.unit.protocol.test_framing import feed, framed


def test_a_buffer_is_not_taken_while_anything_looks_at_it() -> None:
    pool = BufferPool(1000)
    pool.keep(bytearray(500))
    held = pool.take(400)
    assert held is not None
    assert pool.take(400) is None

    view = memoryview(held)[10:20]
    del held
    assert pool.take(400) is None
    deeper = view[2:4]
    del view
    assert pool.take(400) is None
    del deeper

    assert pool.take(400) is not None


def test_a_view_in_another_thread_keeps_it() -> None:
    pool = BufferPool(1000)
    pool.keep(bytearray(500))
    view = memoryview(pool.take(500) or b"")
    go = threading.Event()
    thread = threading.Thread(target=lambda kept: go.wait(), args=(view,))
    thread.start()
    del view
    assert pool.take(500) is None
    go.set()
    thread.join()
    del thread

    assert pool.take(500) is not None


def test_size_and_room_are_bounded() -> None:
    pool = BufferPool(1000)
    for size in (600, 600, 300, 300):
        pool.keep(bytearray(size))
    large = BufferPool(10 * LARGEST_KEPT_BYTES)
    large.keep(bytearray(LARGEST_KEPT_BYTES + 1))

    first, second = pool.take(1), pool.take(1)
    assert (len(first or b""), len(second or b""), pool.take(1)) == (600, 300, None)
    assert large.take(1) is None


def test_frames_stay_as_they_were_while_buffers_are_used_again() -> None:
    rng = random.Random(7)
    pool, arena = BufferPool(2_000_000), Arena()
    kept: list[tuple[memoryview, bytes]] = []
    for _ in range(300):
        body = rng.randbytes(rng.choice([10, 70_000, 150_000, 300_000]))
        reader = FrameReader(400_000, pool)
        data = framed(body)
        position = 0
        frame: memoryview | None = None
        while frame is None:
            own = reader.buffer is not None
            space = reader.own_space() if own else arena.space()
            size = min(len(space), len(data) - position, rng.choice([1000, 50_000]))
            space[:size] = data[position : position + size]
            position += size
            if own:
                del space
                frame = reader.arrived_own(size)
            else:
                frames = reader.arrived(space[:size])
                if frames:
                    arena.keep(size)
                    frame = frames[0]
        kept.append((frame, body))
        if len(kept) > 12:
            kept.pop(rng.randrange(len(kept)))
        assert all(view == body for view, body in kept)


def test_a_reader_with_a_pool_cuts_as_one_without() -> None:
    bodies = [bytes([number]) * size for number, size in enumerate([5, 200_000, 70_000, 0, 300_000])]

    pool = BufferPool(1_000_000)
    for _ in range(3):
        assert feed(FrameReader(400_000, pool), Arena(), framed(*bodies), 65_536) == bodies
