"""Writes docs/client-settings.md: `python -m kavka.config.clients.document > docs/client-settings.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from kavka.config.clients.admin import AdminSettings
from kavka.config.clients.consumer import ConsumerSettings
from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.producer import ProducerSettings
from kavka.config.clients.without_effect import names_without_effect
from kavka.config.setting import Setting

_INTRODUCTION: Final = """# Settings of producers, consumers and administrators

Names, types, checks and defaults are those of Kafka 4.3's clients. A client is made of a mapping of these names, or of
keywords with underscores in place of dots: `Producer({"linger.ms": 20})` is `Producer(linger_ms="20")`. Values are
text, as in properties files, or of the setting's own type; None is the default. A value that cannot be used raises
`ConfigError`.
This page is made by `python -m kavka.config.clients.document` from the rows in `config/clients/`.
"""


def client_settings_page() -> str:
    """The whole page, as Markdown."""
    shared = CommonSettings.ROWS
    parts = [_INTRODUCTION, _section("All clients", shared.values())]
    for title, group in (("Producer", ProducerSettings), ("Consumer", ConsumerSettings), ("Admin", AdminSettings)):
        parts.append(_section(title, (row for row in group.ROWS.values() if row is not shared.get(row.name))))
    lines = ["## Accepted and not used", ""]
    lines += [f"- `{name}`: {reason}" for name, reason in names_without_effect().items()]
    return "\n".join([*parts, "\n".join([*lines, ""])])


def _section(title: str, rows: Iterable[Setting]) -> str:
    lines = [f"## {title}", "", "| name | type | default | allowed | |", "|" + "---|" * 5]
    for row in sorted(rows, key=lambda row: row.name):
        text = row.default_text
        default = "" if text is None else f"`{text}`" if text else '`""`'
        cells = (f"`{row.name}`", row.type.name.lower(), default, str(row.check or ""), row.doc)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(client_settings_page())
