"""The repository's own files, as the house rules see them."""

import ast
import os
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("protocol", "config", "storage", "cluster", "coordinator", "client", "broker", "cli", "testing", "pipeline")


@cache
def own_files() -> tuple[Path, ...]:
    """Every file of ours, but for the symlinks through which rooms are imported. There may be no git to ask."""
    files: list[Path] = []
    for folder, names, filenames in os.walk(REPOSITORY):
        names[:] = [name for name in names if not _is_made(Path(folder), name)]
        files += [Path(folder) / name for name in filenames]
    return tuple(sorted(path for path in files if path.is_file() and not path.is_symlink()))


@cache
def python_files() -> tuple[Path, ...]:
    return tuple(path for path in own_files() if path.suffix == ".py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def module_name(path: Path) -> str | None:
    """The name under which a room's file is imported, or None for files outside the rooms.

    What is shipped beside the rooms counts as one of their files.
    """
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    if parts[0] in ("kavka", "pyspark_kavka"):
        return ".".join(parts)
    return ".".join(("kavka", *parts)) if parts[0] in ROOMS else None


def _is_made(folder: Path, name: str) -> bool:
    """Whether a folder is a cache, an environment or somebody's data, as .gitignore says."""
    hidden = name.startswith(".") and name != ".ci"
    built = folder == REPOSITORY and name in {"build", "dist", "data"}
    return hidden or built or name == "__pycache__" or name.endswith(".egg-info")
