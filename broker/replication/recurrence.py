"""A trouble that comes again and again until it is over: told of less and less."""

from typing import Final

SPACING: Final = 10


class Recurrence:
    """How often in a row. One thread's."""

    __slots__ = ("_next_told", "count")

    def __init__(self) -> None:
        self.count = 0
        self._next_told = 1

    def is_worth_telling(self) -> bool:
        """It came again: whether that is to be logged, as the first, the tenth, the hundredth time is."""
        self.count += 1
        if self.count < self._next_told:
            return False
        self._next_told *= SPACING
        return True

    def end(self) -> int:
        """It is over; how often it came."""
        count, self.count, self._next_told = self.count, 0, 1
        return count
