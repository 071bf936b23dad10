"""How far long work is: a line on standard error that lives while the work goes on, for people at a terminal alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Update(Protocol):
    """Tells how far the work is. Any thread; cheap enough for some calls a second, not for one a record."""

    def __call__(self, done: float, note: str = "") -> None: ...


@contextmanager
def progress(title: str, total: float | None = None, *, is_wanted: bool = True) -> Iterator[Update]:
    """Shows `title`, a bar if `total` is known, the time, and the last note. Gone when the block ends.

    Nothing is shown, and rich not loaded, where standard error is no terminal, or `is_wanted` is false. What is printed
    on standard error meanwhile stands above it.
    """
    if not is_wanted or not has_terminal():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    counted = (BarColumn(), TaskProgressColumn()) if total else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *counted, TextColumn("{task.fields[note]}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task(title, total=total, note="")

        def update(done: float, note: str = "") -> None:
            bar.update(task, completed=done, note=note)

        yield update


def has_terminal() -> bool:
    """Whether somebody may look at standard error."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def amount(records: int, size_bytes: int, elapsed_s: float) -> str:
    """A note: `12,000 records, 1.2 MB, 6,000/s`."""
    rate = f", {records / elapsed_s:,.0f}/s" if elapsed_s > 0 else ""
    return f"{records:,} records, {size_bytes / 1_000_000:,.1f} MB{rate}"


def _silent(done: float, note: str = "") -> None:
    """Nobody looks."""
