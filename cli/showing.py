"""What commands found out, as aligned text for people or as one JSON document for programs.

Each kind of document has a name, under which `cli/schemas/NAME.json` says what programs may count on.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kavka.cli.output import emit

Value: TypeAlias = "str | int | float | bool | Sequence[Any] | dict[str, Any] | None"
"""What JSON can hold. In a table for people None is `-`, and the members of a list are parted by commas."""

BAD: Final = "31"
WARN: Final = "33"
GOOD: Final = "32"
_BOLD: Final = "1"


class Table(NamedTuple):
    """Rows with the same columns, whose names are the JSON objects' keys (`leader_epoch`; people see LEADER-EPOCH).

    `tint` says in which colour a row stands on a terminal: BAD, WARN, GOOD or None.
    """

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Value]]
    tint: Callable[[Sequence[Value]], str | None] | None = None


class Report(NamedTuple):
    """What is no table: `objects` are JSON's, `lines` what people see."""

    name: str
    objects: Iterable[dict[str, Any]]
    lines: Callable[[], Iterable[str]]


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """The flag by which `show` goes."""
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", help="text for people (the default), json for programs"
    )


def show(args: argparse.Namespace, shown: Table | Report) -> None:
    """Print it. Raises OutputError."""
    if args.output == "json":
        import json

        objects = shown.objects if isinstance(shown, Report) else _objects(shown)
        emit(json.dumps(list(objects), indent=2))
        return
    for line in shown.lines() if isinstance(shown, Report) else table_lines(shown):
        emit(line)


def table_lines(table: Table) -> list[str]:
    """The table, aligned: numbers to the right, all else to the left. Without rows, nothing.

    Control characters are escaped.
    """
    rows = [list(row) for row in table.rows]
    if not rows:
        return []
    texts = [[cell_text(value) for value in row] for row in rows]
    titles = [column.replace("_", "-").upper() for column in table.columns]
    widths = [max(map(len, column)) for column in zip(titles, *texts, strict=True)]
    is_number = [all(value is None or _is_number(value) for value in column) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, is_number, strict=True)
        ]
        return "  ".join(aligned).rstrip()

    lines = [tinted(line(titles), _BOLD)]
    for row, cells in zip(rows, texts, strict=True):
        tint = table.tint(row) if table.tint is not None else None
        lines.append(line(cells) if tint is None else tinted(line(cells), tint))
    return lines


def tinted(text: str, colour: str) -> str:
    """The text in this colour, if people look at it on a terminal and want colours (https://no-color.org)."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colour() else text


def has_colour() -> bool:
    """Whether standard output is a terminal that takes colours."""
    environment = os.environ
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def cell_text(value: Value) -> str:
    """A value as people read it, on one line: what comes from outside cannot steer their terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value.isprintable() else escaped(value)
    if isinstance(value, Sequence):
        return ",".join(cell_text(each) for each in value)
    return str(value)


def escaped(text: str) -> str:
    """Control characters as Python writes them: `\\x1b`, `\\n`."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _objects(table: Table) -> list[dict[str, Value]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
