"""No circle of imports: one may read any module knowing only those below it. Imports for types count."""

import ast
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.tidy.sources import module_name, parsed, python_files


def test_no_modules_import_one_another() -> None:
    files = {name.removesuffix(".__init__"): path for path in python_files() if (name := module_name(path)) is not None}
    graph = {name: set(_imports(path, files.keys())) - {name} for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(" -> ".join(circle.args[1])) from None


def _imports(path: Path, modules: Container[str]) -> Iterator[str]:
    """The modules of ours that a file names in imports, wherever these stand."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
