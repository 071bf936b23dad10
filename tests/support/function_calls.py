"""How many functions are called: what code costs, as far as noise cannot move it."""

import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
    """Functions of Python's and of C's that are called while it runs: itself, if it is one, and the count's own end."""
    count = 0

    def watch(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
