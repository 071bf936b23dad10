"""What is shipped leaves the process's own chance alone: programs, and Hypothesis, go by the module's state."""

import ast

from tests.tidy.sources import module_name, parsed, python_files, relative

OWN = {"Random", "SystemRandom"}
PROGRAMS = "kavka.cli."
"""Whose process is theirs."""


def test_nothing_draws_from_the_modules_own_generator() -> None:
    drawn = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files()
        if (name := module_name(path)) is not None and not name.startswith(PROGRAMS)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom | ast.Attribute) and _draws(node)
    ]
    assert drawn == [], "draw from a Random of your own, as kavka.client.dice has one"


def _draws(node: ast.ImportFrom | ast.Attribute) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "random" and any(each.name not in OWN for each in node.names)
    return isinstance(node.value, ast.Name) and node.value.id == "random" and node.attr not in OWN
