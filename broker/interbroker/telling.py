"""Handing on an outcome to whoever waits for it."""

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


def tell(callback: Callable[[T], object], outcome: T) -> None:
    """Call back. What the callback raises is logged: it is neither the thread's fault nor that of others who wait."""
    try:
        callback(outcome)
    except Exception:
        log.exception("an outcome came, and who waited for it failed")
