"""Watching a reassignment until it is done: a bar on a terminal, lines anywhere else, both on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

from kavka.cli.counting import counted
from kavka.cli.reassign.json_files import Reassignment
from kavka.cli.reassign.progress import Left, left, size_text

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin

INTERVAL_S: Final = 1.0
LINE_INTERVAL_S: Final = 10.0
"""Lines pile up in a log: they come less often than a bar moves."""


def follow(admin: "Admin", wanted: Reassignment, *, pause: Callable[[float], None] = time.sleep) -> None:
    """Wait until nothing of it moves any more, and show how far it is. Raises KeyboardInterrupt, KafkaError."""
    now = left(admin, wanted)
    if now.is_nothing:
        return
    with _shown(now) as show:
        while not now.is_nothing:
            show(now)
            pause(INTERVAL_S)
            now = left(admin, wanted)
        show(now)


def note(text: str) -> None:
    """Tell people something that is no result."""
    print(text, file=sys.stderr, flush=True)


def line_of(now: Left) -> str:
    """What is left, on one line."""
    moves = [
        counted(count, noun)
        for count, noun in ((now.partitions, "partition"), (now.directories, "log directory move"))
        if count
    ]
    return f"{' and '.join(moves)} left, {size_text(now.bytes)} to copy" if moves else "all moves are done"


def _shown(first: Left) -> AbstractContextManager[Callable[[Left], None]]:
    return _bar(first) if sys.stderr is not None and sys.stderr.isatty() else _lines()


@contextmanager
def _lines() -> Iterator[Callable[[Left], None]]:
    shown_at, shown = 0.0, ""

    def show(now: Left) -> None:
        nonlocal shown_at, shown
        text = line_of(now)
        is_due = not shown or now.is_nothing or time.monotonic() >= shown_at + LINE_INTERVAL_S
        if is_due and text != shown:
            note(text)
            shown_at, shown = time.monotonic(), text

    yield show


@contextmanager
def _bar(first: Left) -> Iterator[Callable[[Left], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        total = max(first.bytes, 1)
        task = bar.add_task(line_of(first), total=total)

        def show(now: Left) -> None:
            nonlocal total
            # What is written meanwhile has to be copied, too.
            total = max(total, now.bytes)
            bar.update(task, total=total, completed=total - now.bytes, description=line_of(now))

        yield show
