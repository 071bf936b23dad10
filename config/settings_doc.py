"""Writes docs/settings.md from the rows: `python -m kavka.config.settings_doc > docs/settings.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from kavka.config.broker_config import BrokerConfig
from kavka.config.broker_values import BrokerValues
from kavka.config.defaults import KAVKA_DEFAULTS
from kavka.config.group_config import GroupSettings
from kavka.config.kavka_settings import KavkaSettings
from kavka.config.promises import PROMISES
from kavka.config.setting import Setting, Settings
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import CLUSTER_WIDE, PER_BROKER, READ_ONLY

_WITHOUT_EFFECT: Final = (
    "A start names them in its log when they are given. A running broker refuses to change its own, but those "
    "of Kerberos, or back to the default; a topic may have them."
)
_SCOPES: Final = {READ_ONLY: "at start", PER_BROKER: "one broker", CLUSTER_WIDE: "cluster or one broker"}
_INTRODUCTION: Final = """# Settings

Names, types and values are Kafka's. Precedence, highest first: what was changed while the broker ran, the command line
(`--override name=value`), the environment (`KAFKA_LOG_RETENTION_MS` for `log.retention.ms`; `__` stands for an
underscore, `___` for a dash), the file, the default. "Changes" says whether a setting can be changed while the broker
runs: only at start, for one broker, or for the cluster too. This page is made by
`python -m kavka.config.settings_doc` from the rows in `config/`.
"""


def settings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_INTRODUCTION, _differences()]
    groups = [base for base in BrokerValues.__bases__ if issubclass(base, Settings) and base is not KavkaSettings]
    parts.extend(_section(f"Broker: {group.__doc__}", group.ROWS.values()) for group in groups)
    parts.append(_section(f"Broker, not in Kafka: {KavkaSettings.__doc__}", KavkaSettings.ROWS.values()))
    parts.append(_section("Topic", TopicSettings.ROWS.values()))
    parts.append(_section("Group (of the consumer protocol)", GroupSettings.ROWS.values()))
    parts += [_refused(), _ignored()]
    return "\n".join(part for part in parts if part)


def _differences() -> str:
    lines = ["## Defaults that differ from Kafka's", ""]
    for name, (value, reason) in KAVKA_DEFAULTS.items():
        text = ",".join(value) if isinstance(value, tuple) else value
        lines.append(f"- `{name}={text}`: {reason}")
    return "\n".join([*lines, ""])


def _section(title: str | None, rows: Iterable[Setting]) -> str:
    rows = [row for row in rows if row.ignored is None]
    if not rows:
        return ""
    lines = [f"## {(title or '').rstrip('.')}", "", "| name | type | default | allowed | changes | |", "|" + "---|" * 6]
    for row in rows:
        allowed = "" if row.check is None else str(row.check)
        cells = (f"`{row.name}`", row.type.name.lower(), _default(row), allowed, _SCOPES[row.scope], row.doc)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def _default(row: Setting) -> str:
    text = row.default_text
    return "" if text is None else f"`{text}`" if text else '`""`'


def _refused() -> str:
    lines = [
        "## Refused",
        "",
        "These ask for something that Kavka does not do, and without which a broker would be less safe than it looks:",
        "it does not start with them, and takes no such change.",
        "",
        "- a listener that cannot be served: with TLS and no key, or a SASL mechanism that is not known, whose login",
        "  module is missing or another's, or (GSSAPI) whose package is not installed",
    ]
    lines += [f"- `{name}`: {expected}" for name, (_, expected) in PROMISES.items()]
    return "\n".join([*lines, ""])


def _ignored() -> str:
    lines = [
        "## Accepted and not used",
        "",
        f"There is nothing in Kavka that these could change. {_WITHOUT_EFFECT}",
        "",
    ]
    by_reason: dict[str, list[str]] = {}
    for rows, where in ((BrokerConfig.ALL_ROWS, ""), (TopicSettings.ROWS, " (topic)")):
        for row in rows.values():
            if row.ignored is not None and row.name not in PROMISES:
                by_reason.setdefault(row.ignored, []).append(f"`{row.name}`{where}")
    return "\n".join([*lines, *(f"- {reason}: {', '.join(names)}" for reason, names in by_reason.items()), ""])


if __name__ == "__main__":
    sys.stdout.write(settings_page())
