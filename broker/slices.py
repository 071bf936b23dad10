"""Long Python work in short slices, so that a request never waits for it longer than a slice.

The interpreter lets one thread run at a time, and a thread that only computes keeps it until the switch interval is up;
every request would pay that once per hand-over. Work that takes longer than a slice gives the interpreter up by itself.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

SLICE_NS: Final = 500_000
PAUSE_S: Final = 0.00005
"""Long enough for a thread that waits for the interpreter to get it."""

T = TypeVar("T")


def in_slices(
    items: Iterable[T],
    *,
    slice_ns: int = SLICE_NS,
    now_ns: Callable[[], int] = time.perf_counter_ns,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[T]:
    """Give the items one by one, and the interpreter to others whenever a slice is up. Items should be short work."""
    slice_end_ns = now_ns() + slice_ns
    for item in items:
        yield item
        if now_ns() >= slice_end_ns:
            pause(PAUSE_S)
            slice_end_ns = now_ns() + slice_ns


class SlicedList(list[T]):
    """A list that is iterated in slices, by whoever does it: the encoder of a long answer, for one."""

    __slots__ = ()

    def __iter__(self) -> Iterator[T]:
        return in_slices(super().__iter__())
