"""What docs/client.md and docstrings show of administering runs as it stands."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kavka.client import admin as names
from kavka.client.admin import Admin, NewTopic
from kavka.client.api_errors import (
    DelegationTokenRequestNotAllowedError,
    GroupIdNotFoundError,
    SecurityDisabledError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)
from tests.support.console_blocks import ROOT
from tests.support.kavka_process import KavkaProcess
from tests.support.shown_code import blocks, examples

PAGE = ROOT / "docs" / "client.md"
SECTION = "Administering a cluster"
SHOWN = "localhost:9092"


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What examples take for given: an open `admin`, and what it takes and returns."""
    with KavkaProcess(tmp_path / "broker") as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield {**{name: getattr(names, name) for name in names.__all__}, "admin": admin, "bootstrap": broker.bootstrap}


def run(code: str, namespace: dict[str, Any]) -> None:
    """In a namespace of its own, so that examples do not lean on one another."""
    exec(compile(code.replace(SHOWN, namespace["bootstrap"]), "example", "exec"), dict(namespace))


def test_the_pages_programs_run(namespace: dict[str, Any]) -> None:
    section = PAGE.read_text().split(f"## {SECTION}\n")[1].split("\n## ")[0]
    programs = blocks(section)
    assert len(programs) == 3
    for program in programs:
        run(program, namespace)


NOT_HERE = (
    UnsupportedVersionError,
    SecurityDisabledError,
    DelegationTokenRequestNotAllowedError,
    GroupIdNotFoundError,
    TransactionalIdNotFoundError,
)
"""What Kavka says to examples of what it does not serve, and of groups and transactions that are not there."""


def test_the_docstrings_of_classes_run(namespace: dict[str, Any]) -> None:
    admin = namespace["admin"]
    admin.create_topics([NewTopic("visits", 6, 1)])
    admin.alter_group_offsets("billing", {names.TopicPartition("visits", 0): 0})
    # The others are run with a consumer's, or are an alias.
    own = [getattr(names, name) for name in names.__all__ if name not in ("OffsetAndMetadata", "QuotaFilter")]
    programs = [program for each in own for program in examples(inspect.getdoc(each))]
    assert len(programs) >= len(own)
    for program in programs:
        with suppress(*NOT_HERE):
            run(program, namespace)


def test_the_docstrings_of_methods_run(namespace: dict[str, Any]) -> None:
    public = [getattr(Admin, name) for name in dir(Admin) if not name.startswith("_")]
    programs = [program for each in public for program in examples(inspect.getdoc(each))]
    assert len(programs) >= 8
    namespace["admin"].create_topics([NewTopic("orders", 1, 1), NewTopic("visits", 6, 1)])
    namespace["admin"].alter_group_offsets("billing", {names.TopicPartition("orders", 0): 0})
    for program in programs:
        with suppress(*NOT_HERE):
            run(program, namespace)
