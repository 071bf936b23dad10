"""Several independent stories side by side: most of their time is waiting for sessions to end and JVMs to start."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

TIMEOUT_S = 540.0


def each_at_once(names: Sequence[str], story: Callable[[str], None]) -> None:
    """Run the story for each name in a thread of its own. Raises the failures of all, each with its name."""
    with ThreadPoolExecutor(len(names)) as threads:
        running = {name: threads.submit(story, name) for name in names}
        failures = [_named(error, name) for name, one in running.items() if (error := one.exception(TIMEOUT_S))]
    if failures:
        raise ExceptionGroup("of those at once failed", failures)


def _named(error: BaseException, name: str) -> Exception:
    error.add_note(f"({name})")
    return error if isinstance(error, Exception) else RuntimeError(repr(error))
