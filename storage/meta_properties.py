"""`meta.properties` at a log directory's top: whose directory it is.

    version=0
    broker.id=1
    cluster.id=Qiv73oR_Q2yY6Sd4GtGjwQ

A Java properties file, as a Kafka 3.x broker on ZooKeeper writes it; keys that are not known here (`directory.id`) are
kept. `version=1` and the folder `__cluster_metadata-0` belong to KRaft, whose cluster state is a log of its own: such a
directory is refused, for serving it without that state would lose topics' configurations and ids.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kavka.storage.files import Files

META_PROPERTIES_FILE: Final = "meta.properties"
KRAFT_METADATA_FOLDER: Final = "__cluster_metadata-0"

_MAX_BYTES: Final = 64 * 1024
_MAX_BROKER_ID: Final = (1 << 31) - 1
_MAX_CLUSTER_ID_LENGTH: Final = 255


class MetaPropertiesError(Exception):
    """A directory can't be served by this broker, with the file, the reason and what to do."""


class KRaftDirectoryError(MetaPropertiesError):
    """The directory belongs to a Kafka in KRaft mode."""


class MetaProperties(NamedTuple):
    """Whose directory it is; None where the file doesn't say. `others`: keys kept as they were read."""

    broker_id: int | None
    cluster_id: str | None
    others: tuple[tuple[str, str], ...] = ()


def read_meta_properties(directory: Path, files: Files) -> MetaProperties | None:
    """The directory's owner, or None if it has none yet. Raises MetaPropertiesError, KRaftDirectoryError, OSError."""
    if files.exists(directory / KRAFT_METADATA_FOLDER):
        raise KRaftDirectoryError(f"{directory} holds {KRAFT_METADATA_FOLDER}: {_KRAFT_ADVICE}")
    path = directory / META_PROPERTIES_FILE
    try:
        size_bytes = files.size(path)
        if size_bytes > _MAX_BYTES:
            raise MetaPropertiesError(f"{path}: {size_bytes} bytes; a meta.properties has at most {_MAX_BYTES}")
        data = files.read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        return decode_meta_properties(data)
    except MetaPropertiesError as error:
        raise type(error)(f"{path}: {error}") from None


def write_meta_properties(directory: Path, files: Files, properties: MetaProperties) -> None:
    """Replace the directory's file, durably. Raises OSError."""
    files.write_atomically(directory / META_PROPERTIES_FILE, encode_meta_properties(properties))


def agree(found: Mapping[Path, MetaProperties | None]) -> MetaProperties:
    """The one owner of a broker's directories. Raises MetaPropertiesError if two of them name different ones."""
    broker_ids = {owner.broker_id: path for path, owner in found.items() if owner and owner.broker_id is not None}
    cluster_ids = {owner.cluster_id: path for path, owner in found.items() if owner and owner.cluster_id is not None}
    _refuse_two("broker.id", broker_ids)
    _refuse_two("cluster.id", cluster_ids)
    return MetaProperties(next(iter(broker_ids), None), next(iter(cluster_ids), None))


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """The text of the file, in version 0."""
    entries = [("version", "0"), *properties.others]
    if properties.broker_id is not None:
        entries.append(("broker.id", str(properties.broker_id)))
    if properties.cluster_id is not None:
        entries.append(("cluster.id", properties.cluster_id))
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in entries).encode("latin-1")


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Read the text of the file. Raises MetaPropertiesError, KRaftDirectoryError."""
    entries = _entries(data)
    version = entries.pop("version", None)
    if version == "1":
        raise KRaftDirectoryError(f"version=1, {_KRAFT_ADVICE}")
    if version != "0":
        raise MetaPropertiesError(f"expected version=0, found {'no version' if version is None else version[:40]!r}")
    broker_id = entries.pop("broker.id", None)
    if broker_id is not None and not (
        len(broker_id) <= 10 and broker_id.isascii() and broker_id.isdecimal() and int(broker_id) <= _MAX_BROKER_ID
    ):
        raise MetaPropertiesError(f"expected broker.id to be a number from 0 to {_MAX_BROKER_ID}: {broker_id[:40]!r}")
    cluster_id = entries.pop("cluster.id", None)
    if cluster_id is not None and not 0 < len(cluster_id) <= _MAX_CLUSTER_ID_LENGTH:
        raise MetaPropertiesError(f"expected a cluster.id of 1 to {_MAX_CLUSTER_ID_LENGTH} characters")
    return MetaProperties(None if broker_id is None else int(broker_id), cluster_id, tuple(entries.items()))


_KRAFT_ADVICE: Final = (
    "it belongs to Apache Kafka in KRaft mode and can't be adopted; "
    "only directories of brokers on ZooKeeper can (choose another log.dirs, or copy the data with a client)"
)


def _refuse_two(name: str, owners: Mapping[int, Path] | Mapping[str, Path]) -> None:
    if len(owners) > 1:
        named = ", ".join(f"{path} has {value}" for value, path in owners.items())
        raise MetaPropertiesError(f"log.dirs belong to different brokers: {name} differs: {named}")


def _entries(data: bytes) -> dict[str, str]:
    entries: dict[str, str] = {}
    for number, line in enumerate(data.decode("latin-1").splitlines(), start=1):
        text = line.strip(" \t\f")
        if not text or text[0] in "#!":
            continue
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not text.isprintable():
            raise MetaPropertiesError(f"line {number} is not name=value: {text[:80]!r}")
        entries[_unescaped(key.strip())] = _unescaped(value.strip())
    return entries


def _escaped(text: str) -> str:
    return "".join("\\" + character if character in "\\:=#! " else character for character in text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
