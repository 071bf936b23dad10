"""Long Python work in short slices, so that a request never waits for it longer than a slice.

The interpreter lets one thread run at a time, and a thread that only computes keeps it until the switch interval is up;
every request would pay that once per hand-over. Work that takes longer than a slice yields the GIL by itself.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

SLICE_NS: Final = 500_000
PAUSE_S: Final = 0.00005
"""Long enough for a thread that waits for the GIL to get it."""

S = TypeVar("S")
T = TypeVar("T")


def in_slices(
    items: Iterable[T],
    *,
    slice_ns: int = SLICE_NS,
    now_ns: Callable[[], int] = time.perf_counter_ns,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[T]:
    """Give the items one by one, and yield the GIL to others whenever a slice is up. Items should be short work."""
    slice_end_ns = now_ns() + slice_ns
    for item in items:
        yield item
        if now_ns() >= slice_end_ns:
            pause(PAUSE_S)
            slice_end_ns = now_ns() + slice_ns


class LazyList(list[T], Generic[S, T]):
    """A list for the encoder of a long answer: its items are made while it is iterated, in slices, and kept by nobody.

    So ten thousand topics are never there at once, for the garbage collector to walk over while it holds up everything.
    """

    __slots__ = ("_make", "_sources")

    def __init__(self, sources: Sequence[S], make: Callable[[S], T]) -> None:
        super().__init__()
        self._sources = sources
        self._make = make

    def __len__(self) -> int:
        return len(self._sources)

    def __bool__(self) -> bool:
        return bool(self._sources)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, in_slices(self._sources))
