"""All that users name is in one place, and its docstrings show how it is used, by code that fits what there is."""

import ast
import doctest
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import kavka.client
from kavka.client import admin, api_errors, consumer
from kavka.client.consumer.subscription import NotAssignedError
from kavka.client.kafka_error import KafkaError
from tests.support.shown_code import GIVEN, OPEN, examples, mistakes, needs_broker, public_names

ROOT = Path(__file__).resolve().parents[4]
LATER = kavka.client._LATER
CLASSES = {name: value for name in LATER if isinstance(value := getattr(kavka.client, name), type)}
SAMPLES = [
    (name, program)
    for name, each in CLASSES.items()
    for program in examples(inspect.getdoc(each))
    if ">>> " not in program
]


def imported_for_types(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    return {alias.asname or "" for block in blocks for node in ast.walk(block) for alias in getattr(node, "names", [])}


def test_type_checkers_see_what_is_loaded_later() -> None:
    assert imported_for_types("client/__init__.py") == LATER.keys()
    assert imported_for_types("client/api_errors.py") == api_errors._OF_CLIENTS.keys()
    assert LATER.keys() <= set(dir(kavka.client))


def test_what_a_room_has_for_its_users_is_there_too() -> None:
    consumers = {name for name in consumer._LATER if not name.endswith("Error")}
    assert {*admin.__all__, *consumers} - {"ItemErrors"} <= LATER.keys()
    for name in LATER:
        getattr(kavka.client, name)
    assert LATER.keys() - CLASSES.keys() == {"QuotaFilter"}, "an alias of other types"


def test_every_error_is_there() -> None:
    known = {getattr(api_errors, name) for name in (*api_errors.__all__, *api_errors._OF_CLIENTS)}
    raised = set()
    for module in pkgutil.walk_packages(kavka.client.__path__, "kavka.client."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, KafkaError | NotAssignedError):
                raised.add(value)
    assert len(raised) > 130
    assert {each.__name__ for each in raised - known} == set()
    assert not hasattr(api_errors, "NoSuchError")


@pytest.mark.parametrize("name", sorted([*CLASSES, "KafkaError"]))
def test_a_class_shows_how_it_is_used(name: str) -> None:
    shown = CLASSES.get(name, KafkaError)
    assert examples(inspect.getdoc(shown)), f"no program in the docstring of {name}"


@pytest.mark.parametrize(("name", "program"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_what_a_docstring_shows_holds_against_what_is_there(name: str, program: str) -> None:
    assert mistakes(program, {**public_names(), **dict.fromkeys(GIVEN, OPEN)}) == []


@pytest.mark.parametrize(
    ("name", "program"), [each for each in SAMPLES if not needs_broker(each[1])], ids=lambda each: each[:40]
)
def test_what_a_docstring_shows_without_a_client_runs(name: str, program: str) -> None:
    exec(compile(program, name, "exec"), public_names())


def test_what_prompts_show_is_what_comes_out() -> None:
    modules = {import_module(each.__module__) for each in CLASSES.values()}
    results = [doctest.testmod(module) for module in modules]
    assert sum(each.attempted for each in results) >= 6
    assert sum(each.failed for each in results) == 0


@pytest.mark.parametrize(
    ("program", "mistake"),
    [
        ("admin.create_topic([])", "no admin.create_topic"),
        ("admin.list_topics(internal=True)", "admin.list_topics: got an unexpected keyword argument 'internal'"),
        ("NewTopic('visits', partitions=2)", "NewTopic: got an unexpected keyword argument 'partitions'"),
        ("from kavka.client import Amdin", "no Amdin in kavka.client"),
        ("print(visits)", "no visits"),
        ("GroupState.FULL", "no GroupState.FULL"),
    ],
)
def test_mistakes_are_found(program: str, mistake: str) -> None:
    assert mistakes(program, {**public_names(), "admin": OPEN}) == [mistake]
