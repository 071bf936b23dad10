"""docs/compatibility.md's tables, for the tests that hold them against the code and against Kafka."""

import re
from typing import NamedTuple

from tests.tidy.sources import REPOSITORY

PAGE = REPOSITORY / "docs" / "compatibility.md"
NOT_SERVED = "-"


class ServedApi(NamedTuple):
    """A row of the table of APIs; ranges of versions as `low-high`, one version as itself, NOT_SERVED for none."""

    key: int
    name: str
    kavka: str
    kafka39: str
    kafka43: str


def served_apis() -> list[ServedApi]:
    return [ServedApi(int(row[0]), *row[1:]) for row in table("APIs and versions")]


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The cells of a section's table, without its head; the first one or another."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [_cells(line) for line in blocks[number].splitlines()[2:]]


def versions_text(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
