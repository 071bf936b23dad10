"""Which directories were beside this one in `log.dirs`, noted in its meta.properties.

Who takes a directory out of `log.dirs` takes records away as surely as who replaces a disk (KAFKA-14139), and what is
left looks whole. So each directory names all of them, as their paths were; a start that misses one counts those that
are left as new. A path that is called otherwise from now on is missed, too: it costs nothing where all logs are found.
Only brokers that are one among others note it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kavka.storage.meta_properties import MetaProperties

KEY: Final = "kavka.log.dirs"
MOST_CHARACTERS: Final = 32 * 1024
"""Of a file of 64 KiB. Who has more of them is not told of what is missing."""


def note(paths: Iterable[Path]) -> tuple[tuple[str, str], ...]:
    """The entry that names these, or none."""
    text = ",".join(map(_name, paths))
    return ((KEY, text),) if len(text) <= MOST_CHARACTERS else ()


def missing(owners: Iterable[MetaProperties | None], paths: Iterable[Path]) -> list[str]:
    """The directories that some of the owners' files name, and that are not among these."""
    named = [value for owner in owners if owner is not None for key, value in owner.others if key == KEY]
    return sorted({name for value in named for name in value.split(",")}.difference(map(_name, paths)))


def _name(path: Path) -> str:
    """Absolute, in characters that the file may hold. No path of `log.dirs` has a comma."""
    return str(path.absolute()).encode("unicode_escape").decode("ascii")
