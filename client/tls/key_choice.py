"""Of the keys in a store those that Java would show: for each kind of key one, whatever order they lie in.

Its SunX509KeyManagerImpl asks a HashMap of aliases and takes the first whose key is of the kind that the suite needs.
OpenSSL keeps one of each kind, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.client.tls.store_entries import KeyEntry

_LEAST_BUCKETS: Final = 16
_MOST_FILLED: Final = 0.75


def shown_keys(entries: Sequence[KeyEntry]) -> list[KeyEntry]:
    """One for each kind of key."""
    if len(entries) < 2:
        return list(entries)
    found: dict[type, KeyEntry] = {}
    by_alias = {entry.alias: entry for entry in entries}
    for alias in in_javas_order(by_alias):
        found.setdefault(_kind(by_alias[alias]), by_alias[alias])
    return list(found.values())


def in_javas_order(aliases: Iterable[str]) -> list[str]:
    """As a HashMap gives its keys, but for those that share a bucket."""
    given = list(aliases)
    buckets = _LEAST_BUCKETS
    while len(given) > buckets * _MOST_FILLED:
        buckets *= 2
    return sorted(given, key=lambda alias: _spread(alias) & (buckets - 1))


def _spread(text: str) -> int:
    """String.hashCode, as HashMap mixes it."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[place : place + 2])) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _kind(entry: KeyEntry) -> type:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return type(load_pem_private_key(entry.key_pem, None))
