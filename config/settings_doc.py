"""Writes docs/settings.md from the rows: `python -m kavka.config.settings_doc > docs/settings.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from kavka.config.broker_config import BrokerConfig
from kavka.config.defaults import KAVKA_DEFAULTS
from kavka.config.group_config import GroupSettings
from kavka.config.ignored import ROWS as IGNORED_ROWS
from kavka.config.own import KavkaSettings
from kavka.config.setting import Setting, Settings
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import CLUSTER_WIDE, PER_BROKER, READ_ONLY

_SCOPES: Final = {READ_ONLY: "at start", PER_BROKER: "one broker", CLUSTER_WIDE: "cluster or one broker"}
_INTRODUCTION: Final = """# Settings

Names, types and values are Kafka's. A value is taken from the command line (`--override name=value`), else the
environment (`KAFKA_LOG_RETENTION_MS` for `log.retention.ms`; `__` stands for an underscore, `___` for a dash), else the
file, else the default. "Changes" says whether a setting can be changed while the broker runs: only at start, for one
broker, or for the cluster too. This page is made by `python -m kavka.config.settings_doc` from the rows in `config/`.
"""


def settings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_INTRODUCTION, _differences()]
    groups = [base for base in BrokerConfig.__bases__ if issubclass(base, Settings) and base is not KavkaSettings]
    parts.extend(_section(f"Broker: {group.__doc__}", group.ROWS.values()) for group in groups)
    parts.append(_section(f"Broker, not in Kafka: {KavkaSettings.__doc__}", KavkaSettings.ROWS.values()))
    used = [row for row in TopicSettings.ROWS.values() if row.ignored is None]
    parts.append(_section("Topic", used))
    parts.append(_section("Group (of the consumer protocol)", GroupSettings.ROWS.values()))
    parts.append(_ignored())
    return "\n".join(parts)


def _differences() -> str:
    lines = ["## Defaults that differ from Kafka's", ""]
    for name, (value, reason) in KAVKA_DEFAULTS.items():
        text = ",".join(value) if isinstance(value, tuple) else value
        lines.append(f"- `{name}={text}`: {reason}")
    return "\n".join([*lines, ""])


def _section(title: str | None, rows: Iterable[Setting]) -> str:
    lines = [f"## {(title or '').rstrip('.')}", "", "| name | type | default | allowed | changes | |", "|" + "---|" * 6]
    for row in rows:
        allowed = "" if row.check is None else str(row.check)
        cells = (f"`{row.name}`", row.type.name.lower(), _default(row), allowed, _SCOPES[row.scope], row.doc)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def _default(row: Setting) -> str:
    text = row.default_text
    return "" if text is None else f"`{text}`" if text else '`""`'


def _ignored() -> str:
    lines = ["## Accepted and not used", "", "These are named in the log at start when they are given.", ""]
    by_reason: dict[str, list[str]] = {}
    for row in (*IGNORED_ROWS, *TopicSettings.ROWS.values()):
        if row.ignored is not None:
            where = "" if row in IGNORED_ROWS else " (topic)"
            by_reason.setdefault(row.ignored, []).append(f"`{row.name}`{where}")
    lines += [f"- {reason}: {', '.join(names)}" for reason, names in by_reason.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(settings_page())
