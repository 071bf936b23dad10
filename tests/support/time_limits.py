"""Whether what has a time limit keeps it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SLACK_S: Final = 25.0
"""What a busy machine may add to any limit; less than the limits' defaults, which count where a setting does not."""


@contextmanager
def within(most_ms: float, least_ms: float = 0.0) -> Iterator[None]:
    """What happens here takes no longer than its limit and SLACK_S, and no less than `least_ms`."""
    began = time.monotonic()
    yield
    took_ms = (time.monotonic() - began) * 1000
    assert least_ms <= took_ms < most_ms + SLACK_S * 1000, f"it took {took_ms:.0f} ms, with a limit of {most_ms} ms"
