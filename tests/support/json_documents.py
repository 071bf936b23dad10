"""The JSON documents of the `kavka` command: held to their schemas, and to files in tests/unit/cli/golden."""

import json
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_SCHEMAS = _ROOT / "cli" / "schemas"
_GOLDEN = _ROOT / "tests" / "unit" / "cli" / "golden"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "object": dict,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_KNOWN = {"type", "items", "properties", "required", "additionalProperties", "enum", "description", "$schema", "title"}


def document(name: str, text: str) -> list[dict[str, Any]]:
    """What a command printed with `--output json`, which is as cli/schemas/NAME.json says."""
    found = json.loads(text)
    problems = list(_problems(json.loads((_SCHEMAS / f"{name}.json").read_text()), found, "$"))
    assert problems == []
    assert isinstance(found, list)
    return found


def line_document(name: str, line: str) -> dict[str, Any]:
    """One of the objects that a command prints a line each, which is as cli/schemas/NAME.json says."""
    found = json.loads(line)
    assert list(_problems(json.loads((_SCHEMAS / f"{name}.json").read_text()), found, "$")) == []
    assert isinstance(found, dict)
    return found


def assert_golden(name: str, text: str) -> None:
    """The document is as its schema says and, to the letter, as it was: programs read it."""
    assert document(name, text), "a golden document with nothing in it shows nothing"
    assert text == (_GOLDEN / f"{name}.json").read_text()


def assert_golden_line(name: str, line: str) -> None:
    """The same of a command that prints an object a line."""
    line_document(name, line)
    assert line == (_GOLDEN / f"{name}.json").read_text()


def _problems(schema: dict[str, Any], value: Any, where: str) -> list[str]:
    """What of JSON Schema is used here; all else is refused, so that none is believed to hold."""
    unknown = schema.keys() - _KNOWN
    assert not unknown, f"{unknown} in a schema is not understood by the tests"
    kinds = schema.get("type")
    if kinds is not None and not any(_is(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{where}: {value!r} is not of type {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            found += _problems(schema["items"], each, f"{where}[{index}]")
    if isinstance(value, dict):
        found += _object_problems(schema, value, where)
    return found


def _object_problems(schema: dict[str, Any], value: dict[str, Any], where: str) -> list[str]:
    found = [f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value]
    rows = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, each in value.items():
        if name in rows:
            found += _problems(rows[name], each, f"{where}.{name}")
        elif isinstance(others, dict):
            found += _problems(others, each, f"{where}.{name}")
        elif not others:
            found.append(f"{where}: {name} has no place there")
    return found


def _is(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))
