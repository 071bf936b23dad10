"""Something of a broker's that hangs for as long as a test says."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_S = 120.0


class Gate:
    """Lets pass who comes, and lets wait who comes while it is `held`. Any thread."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()

    @property
    def is_held(self) -> bool:
        return not self._open.is_set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Held from now to the end of the block."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def pass_through(self) -> None:
        """Wait until it is held no more."""
        assert self._open.wait(LONGEST_S), "the gate was held for too long"
