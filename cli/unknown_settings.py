"""Settings that no client of Kafka knows: said on standard error as Kafka's tools do, and the command goes on."""

import sys
from collections.abc import Mapping
from typing import Final

LEAST_LIKENESS: Final = 0.8
"""Of a mistyped name to the one it is taken for, from 0 to 1."""


def warned(source: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    """The same settings, after a line for each name that no producer, consumer or administrator has.

    A setting of another kind of client than the command's is no mistake: one file often serves several tools.
    """
    if settings:
        known = _known()
        for name in settings:
            if name not in known and _has_effect(name):
                print(f"kavka: {source}: no client has a setting {name!r}{_meant(name, known)}", file=sys.stderr)
    return settings


def _known() -> frozenset[str]:
    from kavka.client.producer.old_settings import OLD_NAMES
    from kavka.config.clients.admin import AdminSettings
    from kavka.config.clients.consumer import ConsumerSettings
    from kavka.config.clients.producer import ProducerSettings

    return frozenset({*AdminSettings.ROWS, *ConsumerSettings.ROWS, *ProducerSettings.ROWS, *OLD_NAMES})


def _has_effect(name: str) -> bool:
    from kavka.config.clients.without_effect import why_without_effect

    return why_without_effect(name) is None


def _meant(name: str, known: frozenset[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(known), 1, LEAST_LIKENESS)
    return f"; did you mean {close[0]}?" if close else ""
