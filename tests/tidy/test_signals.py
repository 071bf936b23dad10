"""A signal handler takes no lock: the main thread, between any two steps of which it runs, may have it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import parsed, python_files, relative


def test_no_signal_handler_sets_an_event() -> None:
    """`Event.set` takes the lock that `Event.wait` in the main thread holds for a moment: then neither goes on."""
    setting = [
        f"{relative(path)}:{handler.lineno}"
        for path in python_files()
        for handler in _handlers(path)
        if any(isinstance(node, ast.Attribute) and node.attr == "set" for node in ast.walk(handler))
    ]
    assert setting == [], "wait for the signal (signal.sigwait, tests/support/termination.py) or raise an exception"


def _handlers(path: Path) -> Iterator[ast.Lambda | ast.FunctionDef]:
    """What a file gives to `signal.signal`: lambdas, and functions of its own."""
    tree = parsed(path)
    given = [
        node.args[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "signal"
        and len(node.args) == 2
    ]
    names = {each.id for each in given if isinstance(each, ast.Name)}
    yield from (each for each in given if isinstance(each, ast.Lambda))
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names)
