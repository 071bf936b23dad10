"""Starting brokers for `async with`, which may be cancelled while they start."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def entered(enter: Callable[[], T], close: Callable[[], object]) -> T:
    """What `enter()` gives, which runs on another thread. When the wait is cancelled, it is closed once it is there."""
    entering = asyncio.ensure_future(asyncio.to_thread(enter))
    try:
        return await asyncio.shield(entering)
    except asyncio.CancelledError:
        # A thread cannot be interrupted, and nobody else would close what it has started.
        with suppress(Exception):
            await entering
        await asyncio.to_thread(close)
        raise
