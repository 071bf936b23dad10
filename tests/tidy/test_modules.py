"""What a module may be called and import, and that somebody needs it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import REPOSITORY, ROOMS, module_name, own_files, parsed, python_files, relative

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
ENTRY_POINTS = {"kavka.__main__"}
OUTSIDE_PROTOCOL = {"socket", "asyncio", "uvloop", "selectors", "subprocess", "time"}
FOR_OTHERS = ["broker/requests/handling.py: registered_handlers", "client/serialization.py: Json"]
"""Names for tests of single handlers, and for programs."""
NOT_SHIPPED = {"tests", "benchmarks", "examples"}


def test_a_module_is_called_by_what_it_holds() -> None:
    named_after_nothing = [
        relative(path)
        for path in python_files()
        if {part.removesuffix(".py") for part in path.relative_to(REPOSITORY).parts} & EMPTY_NAMES
    ]
    assert named_after_nothing == []


def test_every_module_is_imported_by_a_room_or_discovered() -> None:
    """A module that only tests import is dead, unless it is run by itself.

    Strings count as imports: `-m kavka.x`, `kavka.x:name`, and `f"kavka.x.{name}"` for all of a folder.
    """
    needed: set[str] = set(ENTRY_POINTS)
    discovered: set[str] = set()
    for path in _room_files():
        own = module_name(path)
        for name in _imported_names(path):
            needed.add(name)
        for text in _strings(path):
            if text == "__main__":
                needed.add(str(own))
            elif text.startswith("kavka.") and text.endswith("."):
                discovered.add(text.removesuffix("."))
            elif text.startswith("kavka.") and text != own:
                needed.add(text.partition(":")[0])
    entry = (REPOSITORY / "pyproject.toml").read_text()
    modules = {path: module_name(path) or "" for path in _room_files() if path.name != "__init__.py"}
    dead = [
        relative(path)
        for path, name in modules.items()
        if name not in needed
        and name.rpartition(".")[0] not in discovered
        and f'"{name}:' not in entry
        and f'"{name}"' not in entry
    ]
    assert dead == [], "\n".join(dead)


def test_every_name_of_a_module_is_used_by_a_room() -> None:
    """One that only tests use is dead, too. What is decorated, or begins with `pytest_`, others find by that."""
    used = {word for path in _room_files() for word in _used_names(path)}
    dead = [
        f"{relative(path)}: {name}"
        for path in _room_files()
        if not relative(path).startswith("protocol/messages/")
        for name in _defined_names(parsed(path))
        if name not in used and not name.startswith(("__", "pytest_"))
    ]
    assert sorted(dead) == FOR_OTHERS, "\n".join(dead)


def test_protocol_has_no_network_and_no_clock() -> None:
    found = [
        f"{relative(path)}: {name}"
        for path in _room_files()
        if relative(path).startswith("protocol/")
        for name in _imported_names(path)
        if name.partition(".")[0] in OUTSIDE_PROTOCOL
    ]
    assert found == [], "\n".join(found)


def test_rooms_import_nothing_that_is_not_shipped() -> None:
    found = [
        f"{relative(path)}: {name}"
        for path in _room_files()
        for name in _imported_names(path)
        if name.partition(".")[0] in NOT_SHIPPED
    ]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("room", [room for room in ROOMS if (REPOSITORY / room).is_dir()])
def test_each_room_is_reached_through_the_import_root(room: str) -> None:
    link = REPOSITORY / "kavka" / room
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{room}"


def test_each_top_folder_has_a_readme_of_at_most_forty_lines() -> None:
    folders = {path.relative_to(REPOSITORY).parts[0] for path in own_files() if path.parent != REPOSITORY}
    # The import root holds links alone; a README there would be shipped inside the package.
    documented = {name for name in folders if not name.startswith(".")} - {"kavka"}
    missing = [name for name in sorted(documented) if not (REPOSITORY / name / "README.md").is_file()]
    assert missing == []
    lengths = {name: len((REPOSITORY / name / "README.md").read_text().splitlines()) for name in documented}
    assert {name: lines for name, lines in lengths.items() if lines > 40} == {}


def _room_files() -> list[Path]:
    return [path for path in python_files() if module_name(path) is not None]


def _imported_names(path: Path) -> Iterator[str]:
    """Every module that may be meant: `from kavka.storage import segment` yields the package and the module."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def _defined_names(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _used_names(path: Path) -> Iterator[str]:
    """What is read, imported, or named in a string that is no docstring: types, what is imported when asked for."""
    said = {id(node.value) for node in ast.walk(parsed(path)) if isinstance(node, ast.Expr)}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield from re.findall(r"\w+", node.value)


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
