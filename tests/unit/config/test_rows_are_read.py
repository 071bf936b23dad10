"""Every setting is followed, or says that it is not: what no code reads must not be documented as if it worked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from kavka.config import BrokerConfig
from kavka.config.group_config import GroupSettings
from kavka.config.setting import Setting
from kavka.config.topic_settings import TopicSettings

ROOT = Path(__file__).parents[3]
ROOMS = ("broker", "cli", "cluster", "coordinator", "storage")
SNAPSHOTS = frozenset(
    (
        "_config",
        "_job",
        "_rules",
        "config",
        "current",
        "environment",
        "group_config",
        "job",
        "new",
        "own",
        "rules",
        "settings",
        "static",
    )
)
"""What the code calls a snapshot of settings, or the part of one that it was given."""
DERIVING = (
    "broker_config.py",
    "clients/towards_brokers.py",
    "group_config.py",
    "resolved.py",
    "sasl_settings.py",
    "topic_config.py",
)
"""The files of the room `config` that work other values out of settings."""


BY_NAME = ("broker/security/tls/principal.py", "broker/security/tls/server_tls.py", "client/tls/contexts.py")
"""Files elsewhere that ask for a listener's settings, by their names."""


def attributes_read() -> set[str]:
    """Attributes that code outside the room `config` reads of something called a snapshot."""
    read: set[str] = set()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    owner = node.value.func if isinstance(node.value, ast.Call) else node.value
                    if getattr(owner, "attr", getattr(owner, "id", None)) in SNAPSHOTS:
                        read.add(node.attr)
    return read


def names_in(*files: str) -> set[str]:
    """The texts in files of the room `config` or `broker`."""
    trees = [ast.parse((ROOT / file).read_text()) for file in files]
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def rows_read() -> Iterator[tuple[str, Setting, bool]]:
    """(kind, row, whether it is read), of brokers, topics and groups."""
    read = attributes_read()
    deriving = names_in(*(f"config/{file}" for file in DERIVING), *BY_NAME)
    behind: set[str] = set()
    for kind, rows in (("topic", TopicSettings.ROWS), ("group", GroupSettings.ROWS)):
        for row in rows.values():
            yield kind, row, row.attribute in read or (kind == "topic" and row.name in deriving)
            if row.ignored is None:
                behind.update(row.synonyms)
    for row in BrokerConfig.ROWS.values():
        yield "broker", row, row.attribute in read or row.name in deriving or row.name in behind


def test_every_setting_that_is_not_marked_is_read_by_some_code() -> None:
    unread = [f"{kind} {row.name}" for kind, row, is_read in rows_read() if not is_read and row.ignored is None]

    assert unread == [], "serve them, or say by `ignored=` why not"


DERIVED_IN_VAIN = {
    "remote.storage.enable",
}
"""Looked at in the room `config`, where what comes of it is used by nobody, or refused."""


def test_no_setting_that_is_said_to_have_no_effect_is_read() -> None:
    read = [row.name for _, row, is_read in rows_read() if is_read and row.ignored is not None]

    assert set(read) - DERIVED_IN_VAIN == set(), "they work now: take out their `ignored=`"
