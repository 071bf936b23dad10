"""Groups as they go: a table that is redrawn on a terminal, lines otherwise."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kavka.cli.groups.choosing import raise_failures
from kavka.cli.groups.described import Group, described_groups
from kavka.cli.groups.moments import ago_text, moment_text
from kavka.cli.groups.progress import Look, Progress, progress_of
from kavka.cli.output import emit, flush
from kavka.cli.showing import cell_text, escaped
from kavka.client.kafka_error import KafkaError

if TYPE_CHECKING:
    from rich.table import Table

    from kavka.client import Admin

_COLUMNS: Final = "GROUP", "STATE", "MEMBERS", "TOPIC", "LAG", "LAG-SECONDS", "CONSUMED/S", "LAST-REBALANCE"
_NUMBERS: Final = frozenset({"MEMBERS", "LAG", "LAG-SECONDS", "CONSUMED/S"})


class Row(NamedTuple):
    """A group in a topic; `topic` is None for one without offsets."""

    group: Group
    topic: str | None
    lag: int | None
    lag_seconds: float | None
    """Of the partition that is furthest behind."""
    consumed_per_s: float | None
    """Since the update before; None in the first one."""


class Update(NamedTuple):
    """What was found out at a time, and what could not be."""

    at_ms: int
    rows: list[Row]
    failures: "dict[str, KafkaError]"


Show: TypeAlias = Callable[[Update], None]


class Watch:
    """Asks again and again. Owned by one thread."""

    def __init__(self, admin: "Admin", group_ids: Callable[[], Iterable[str]], look: Look) -> None:
        """`group_ids` is called for each update: groups come and go."""
        self._admin = admin
        self._group_ids = group_ids
        self._look = look
        self._committed: dict[tuple[str, str], tuple[int, int]] = {}
        """How far a group has come in a topic, all partitions together, and when that was (monotonic ns)."""

    def update(self) -> Update:
        """How the groups are now. Raises KafkaError if no broker tells."""
        found, failures = described_groups(self._admin, self._group_ids())
        progress, failed = progress_of(self._admin, found.values(), self._look)
        now_ms = time.time_ns() // 1_000_000
        rows = [row for group in found.values() for row in self._rows(group, progress.get(group.group_id, []), now_ms)]
        return Update(now_ms, rows, {**failures, **failed})

    def _rows(self, group: Group, progress: list[Progress], now_ms: int) -> Iterable[Row]:
        topics: dict[str, list[Progress]] = {}
        for each in progress:
            topics.setdefault(each.partition.topic, []).append(each)
        if not topics:
            yield Row(group, None, None, None, None)
        for topic, parts in topics.items():
            lags = [each.lag for each in parts if each.lag is not None]
            seconds = [known for each in parts if (known := each.lag_seconds(now_ms)) is not None]
            rate = self._rate(group.group_id, topic, parts)
            yield Row(group, topic, sum(lags) if lags else None, max(seconds, default=None), rate)

    def _rate(self, group_id: str, topic: str, parts: list[Progress]) -> float | None:
        committed, now_ns = (
            sum(each.committed.offset for each in parts if each.committed is not None),
            time.monotonic_ns(),
        )
        before = self._committed.get((group_id, topic))
        self._committed[group_id, topic] = committed, now_ns
        if before is None or now_ns <= before[1]:
            return None
        return (committed - before[0]) * 1e9 / (now_ns - before[1])


def watch_on(watch: Watch, interval_ms: int, updates: int | None) -> None:
    """Show one update after another, for ever or so many. Raises OutputError, KeyboardInterrupt.

    What does not work in the first one rises as KafkaError; later it is shown, and the next update may have more.
    """
    never = threading.Event()
    with ExitStack() as stack:
        update = watch.update()
        if not update.rows:
            raise_failures("describing groups", update.failures, {})
        show = stack.enter_context(_Redrawn()).show if _is_drawn_on() else _append
        shown = 0
        while True:
            show(update)
            shown += 1
            if shown == updates:
                return
            never.wait(interval_ms / 1000)
            try:
                update = watch.update()
            except KafkaError as error:
                update = Update(time.time_ns() // 1_000_000, [], {"": error})


def _is_drawn_on() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _append(update: Update) -> None:
    """A line for each row, for files and pipes."""
    moment = moment_text(update.at_ms)
    for row in update.rows:
        emit(f"{moment}  " + "  ".join(_named_cells(row, update.at_ms)))
    for group_id, error in update.failures.items():
        emit(f"{moment}  {escaped(group_id)}  {escaped(str(error))}")
    flush()


def _named_cells(row: Row, now_ms: int) -> Iterable[str]:
    group, state, *others = _cells(row, now_ms)
    yield group
    yield state
    for title, cell in zip(_COLUMNS[2:], others, strict=True):
        yield f"{title.lower()}={cell}"


def _cells(row: Row, now_ms: int) -> list[str]:
    last = row.group.last_rebalance
    rate = None if row.consumed_per_s is None else round(row.consumed_per_s, 1)
    return [
        cell_text(row.group.group_id),
        row.group.state.value,
        str(len(row.group.members)),
        cell_text(row.topic),
        cell_text(row.lag),
        cell_text(None if row.lag_seconds is None else round(row.lag_seconds, 1)),
        cell_text(rate),
        "-" if last is None else f"{ago_text(last.timestamp_ms, now_ms)}: {escaped(last.reason)}",
    ]


class _Redrawn:
    """The table on a terminal, drawn anew in its place. Owned by one thread."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(), auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> "_Redrawn":
        self._live.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        # The cursor is shown again, also after Ctrl-C.
        self._live.stop()

    def show(self, update: Update) -> None:
        self._live.update(_table(update), refresh=True)


def _table(update: Update) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, caption=Text(f"{moment_text(update.at_ms)}  Ctrl-C ends"), caption_justify="left")
    for title in _COLUMNS:
        table.add_column(title, justify="right" if title in _NUMBERS else "left", overflow="ellipsis", no_wrap=True)
    for row in update.rows:
        cells = [Text(cell) for cell in _cells(row, update.at_ms)]
        table.add_row(*cells, style="" if row.group.is_settled else "yellow")
    for group_id, error in update.failures.items():
        table.add_row(Text(cell_text(group_id)), Text(escaped(str(error))), style="red")
    return table
