"""Paths as Spark takes them, whatever is in their names: blanks, umlauts, brackets."""

import re
from pathlib import Path
from typing import Final

_OF_PATTERNS: Final = re.compile(r"[\\*?\[\]{}]")


def to_write(path: Path) -> str:
    """Of this file system, whatever Spark's own is. Not `as_uri()`: Hadoop takes what is escaped there as it stands."""
    return f"file://{path}"


def to_read(path: Path) -> str:
    """The same; what is read is a pattern to Spark."""
    return to_write(Path(_OF_PATTERNS.sub(r"\\\g<0>", str(path))))
