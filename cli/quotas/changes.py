"""What quotas are to be, from kafka-configs's flags."""

import argparse
import math
from collections.abc import Iterable
from typing import Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.quotas.arguments import entity_of
from kavka.client.admin import ClientQuotaEntity

_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def changes_of(args: argparse.Namespace) -> tuple[ClientQuotaEntity, dict[str, float | None]]:
    """Whose quotas are to change, and to what; None removes. Raises Failure."""
    names, nameless = entity_of(args)
    if nameless or not names:
        raise _wrong("whose quotas? give --user, --client, --ip or their defaults")
    changes: dict[str, float | None] = dict(_pairs(args.add_config))
    for name in _parts(args.delete_config):
        if name in changes:
            raise _wrong(f"{name} cannot be set and deleted at once")
        changes[name] = None
    if not changes:
        raise _wrong("nothing is to change: give --add-config or --delete-config")
    if scram := [name for name in changes if name in _SCRAM]:
        raise Failure(f"{scram[0]} is no quota", "kavka users has passwords", WRONG_USAGE)
    return ClientQuotaEntity(frozenset(names.items())), changes


def _pairs(texts: Iterable[str]) -> Iterable[tuple[str, float]]:
    for part in _parts(texts):
        name, given, text = part.partition("=")
        try:
            value = float(text) if given else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise _wrong(f"--add-config {part}: NAME=NUMBER is expected, such as producer_byte_rate=1048576")
        yield name.strip(), value


def _parts(texts: Iterable[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _wrong(message: str) -> Failure:
    return Failure(message, exit_code=WRONG_USAGE)
