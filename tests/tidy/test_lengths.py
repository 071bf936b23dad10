"""Files of at most 400 lines, functions of at most 60. The tables hold what was longer once and may only shrink."""

import ast

from tests.tidy.sources import parsed, python_files, relative

FILE_LINES = 400
FUNCTION_LINES = 60

LONGER_FILES: dict[str, int] = {}
LONGER_FUNCTIONS: dict[str, int] = {}


def test_no_file_grows_beyond_its_limit() -> None:
    sizes = {relative(path): len(path.read_text().splitlines()) for path in python_files()}
    too_long = {name: lines for name, lines in sizes.items() if lines > LONGER_FILES.get(name, FILE_LINES)}
    assert too_long == {}, too_long


def test_no_function_grows_beyond_its_limit() -> None:
    too_long = {}
    for path in python_files():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{relative(path)}::{node.name}"
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGER_FUNCTIONS.get(name, FUNCTION_LINES):
                    too_long[name] = lines
    assert too_long == {}, too_long


def test_the_tables_of_exceptions_only_shrink() -> None:
    sizes = {relative(path): len(path.read_text().splitlines()) for path in python_files()}
    slack = {name: limit for name, limit in LONGER_FILES.items() if sizes.get(name, 0) < limit}
    assert slack == {}, "shorter now: lower the number, or remove the line"
