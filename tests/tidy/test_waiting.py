"""Tests wait by polling for what they need; only the helper that polls may sleep."""

import ast

from tests.tidy.sources import parsed, python_files, relative

POLLING = "tests/support/processes.py"


def test_nothing_sleeps_but_the_helper_that_polls() -> None:
    sleeping = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files()
        if relative(path).startswith("tests/") and relative(path) != POLLING
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Attribute) and node.attr == "sleep")
        or (isinstance(node, ast.Name) and node.id == "sleep")
    ]
    assert sleeping == [], "wait_until what is needed, or let_pass a time that is part of the test"
