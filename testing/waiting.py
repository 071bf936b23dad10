"""Waiting in a test: for what is to become true, with the reason why it did not."""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

DEFAULT_TIMEOUT_S: Final = 60.0
_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 0.05

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], timeout_s: float = DEFAULT_TIMEOUT_S, message: Callable[[], str] | str = ""
) -> T:
    """Ask `condition()` again and again until it is true; what it gave then.

    Raises AssertionError after `timeout_s` with `message`, which may be made only then.
    """
    deadline_s = time.monotonic() + timeout_s
    pause = threading.Event()
    pause_s = _FIRST_PAUSE_S
    while not (found := condition()):
        if time.monotonic() >= deadline_s:
            text = message if isinstance(message, str) else message()
            raise AssertionError(f"not within {timeout_s:g} s: {text or condition}")
        pause.wait(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
    return found
