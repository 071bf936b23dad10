"""Every setting of a client is followed by that client, or says why not; 3.9's names that 4.3 has no more, too."""

import ast
from pathlib import Path

import pytest

from kavka.config.clients import AdminSettings, CommonSettings, ConsumerSettings, ProducerSettings
from kavka.config.clients.without_effect import names_without_effect, why_without_effect

ROOT = Path(__file__).parents[4]
SETTINGS_OBJECTS = {"_settings", "checked", "settings"}
"""What the clients' code calls an object of settings."""
KINDS: dict[str, type[CommonSettings]] = {
    "producer": ProducerSettings,
    "consumer": ConsumerSettings,
    "admin": AdminSettings,
}
CHECKED_ALONE = {
    "sasl.client.callback.handler.class": "Java's classes cannot be loaded: a value is refused",
    "sasl.login.class": "the same",
    "ssl.engine.factory.class": "the same",
    "bootstrap.controllers": "controllers are not asked directly: a value is refused",
}
OF_39 = (
    "auto.include.jmx.reporter",
    "internal.leave.group.on.close",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "enable.metrics.push",
    "metrics.recording.level",
    "security.providers",
    "sasl.oauthbearer.header.urlencode",
    "ssl.engine.factory.class",
)
"""Of what Kafka 3.9's producers, consumers and administrators have: what 4.3 has no more, or we do not follow."""


def read_by(files: list[Path]) -> set[str]:
    """Attributes that code reads of objects of settings, and those it names in texts."""
    read: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                owner = node.value
                if getattr(owner, "attr", getattr(owner, "id", None)) in SETTINGS_OBJECTS:
                    read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
    return read


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_read_by_the_client_whose_it_is(kind: str) -> None:
    own = sorted((ROOT / "client" / kind).rglob("*.py"))
    security = [path for part in ("security", "tls") for path in sorted((ROOT / "client" / part).rglob("*.py"))]
    read = read_by([*sorted((ROOT / "client").glob("*.py")), *security, *own])
    rows = KINDS[kind].ROWS.values()
    unread = {row.name for row in rows if not {row.attribute, row.name} & read and row.name not in CHECKED_ALONE}

    assert unread == set(), "serve them, or say in config/clients/without_effect.py why not"


@pytest.mark.parametrize("name", CHECKED_ALONE)
def test_what_is_only_checked_says_so_where_it_is_documented(name: str) -> None:
    row = next(kind.ROWS[name] for kind in KINDS.values() if name in kind.ROWS)
    assert "refused" in row.doc


def test_what_is_said_to_have_no_effect_is_read_nowhere() -> None:
    read = read_by(sorted((ROOT / "client").rglob("*.py")))
    names = [name for name in names_without_effect() if "*" not in name]
    assert [name for name in names if name in read or name.replace(".", "_") in read] == []


@pytest.mark.parametrize("name", OF_39)
def test_a_setting_of_kafka_39_is_a_row_or_says_why_not(name: str) -> None:
    assert any(name in kind.ROWS for kind in KINDS.values()) != bool(why_without_effect(name))
