"""Programs that pages and docstrings show: found, and held against what there is, without being run.

What a program takes for given, such as an open `admin`, is named here with its class, so that its calls can be held
against the methods' parameters.
"""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Any, Final

from kavka import client
from kavka.client import api_errors

_PLACEHOLDER: Final = object()
OPEN: Final = object()
"""Stands for an open client of the kind that its name says."""


def public_names() -> dict[str, Any]:
    """All that `kavka.client` has for its users, errors too."""
    names = {name: getattr(client, name) for name in dir(client) if name[0].isupper()}
    errors = {name: getattr(api_errors, name) for name in (*api_errors.__all__, *api_errors._OF_CLIENTS)}
    return {**errors, **{name: value for name, value in names.items() if name not in ("Any", "Final", "TYPE_CHECKING")}}


GIVEN: Final[Mapping[str, str]] = {"admin": "Admin", "producer": "Producer", "consumer": "Consumer"}
"""Names that stand for open clients, and their classes."""


def blocks(text: str) -> list[str]:
    """What a page shows indented by four spaces or more, each run of such lines by itself."""
    found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)
    return [dedent(block).lstrip("\n") for block in found]


def examples(text: str | None) -> list[str]:
    """The programs in a docstring: paragraphs that parse and call or import something, neighbours as one."""
    found: list[str] = []
    goes_on = False
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        starts = is_program(dedent(paragraph))
        if goes_on and (starts or paragraph[:1].isspace()) and _parses(dedent(f"{found[-1]}\n\n{paragraph}")):
            found[-1] += f"\n\n{paragraph}"
            continue
        goes_on = starts
        if starts:
            found.append(paragraph)
    return [dedent(each) for each in found]


def needs_broker(program: str) -> bool:
    """Whether it uses a client."""
    clients = {*GIVEN, *GIVEN.values()}
    return any(isinstance(node, ast.Name) and node.id in clients for node in ast.walk(ast.parse(program)))


def is_program(text: str) -> bool:
    """Whether it parses, and calls or imports something."""
    if ">>> " in text:
        return True
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom | ast.ClassDef) for node in ast.walk(tree))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def mistakes(code: str, names: Mapping[str, Any]) -> list[str]:
    """What `code` uses that is not there: names, imports, methods of clients, parameters of what it calls.

    `names` are those that it may use without importing them; OPEN stands for an open client.
    """
    tree = ast.parse(code)
    known = {**vars(builtins), **names}
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            absent = [each.name for each in node.names if not _imported(node.module, each, known)]
            found += [f"no {name} in {node.module}" for name in absent]
        elif isinstance(node, ast.Import):
            known.update((each.asname or each.name, _PLACEHOLDER) for each in node.names)
    made = {call.func.id for call in ast.walk(tree) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
    # What it calls by a client's name is one if it makes one, and else something of its own.
    known.update((name, OPEN if GIVEN.get(name) in made else _PLACEHOLDER) for name in _bound(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
            found.append(f"no {node.id}")
        elif isinstance(node, ast.Attribute) and not _has(node, known):
            found.append(f"no {ast.unparse(node)}")
        elif isinstance(node, ast.Call):
            found += _unfit(node, known)
    return found


def _imported(module: str, alias: ast.alias, known: dict[str, Any]) -> bool:
    value = getattr(__import__(module, fromlist=[alias.name]), alias.name, _PLACEHOLDER)
    known[alias.asname or alias.name] = value
    return value is not _PLACEHOLDER


def _bound(tree: ast.AST) -> set[str]:
    return set(_bindings(tree))


def _bindings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def _owner(node: ast.Attribute, known: Mapping[str, Any]) -> Any:
    """The class of an open client, or a class itself, whose attribute is meant; None for what is not known."""
    if not isinstance(node.value, ast.Name):
        return None
    value = known.get(node.value.id)
    if value is OPEN:
        value = getattr(client, GIVEN[node.value.id])
    return value if isinstance(value, type) else None


def _has(node: ast.Attribute, known: Mapping[str, Any]) -> bool:
    owner = _owner(node, known)
    return owner is None or hasattr(owner, node.attr) or node.attr in getattr(owner, "__annotations__", ())


def _unfit(call: ast.Call, known: Mapping[str, Any]) -> list[str]:
    """Arguments that have no parameter."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return []
    if isinstance(call.func, ast.Attribute):
        owner = _owner(call.func, known)
        called = getattr(owner, call.func.attr, None) if owner is not None else None
        is_open = isinstance(call.func.value, ast.Name) and known.get(call.func.value.id) is OPEN
        first: list[Any] = [_PLACEHOLDER] if is_open else []
    else:
        called = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
        first = []
    if called is None or called is _PLACEHOLDER or not callable(called):
        return []
    try:
        signature = inspect.signature(called)
    except ValueError:
        return []
    try:
        signature.bind(*first, *call.args, **{str(each.arg): each.value for each in call.keywords})
    except TypeError as error:
        return [f"{ast.unparse(call.func)}: {error}"]
    return []
