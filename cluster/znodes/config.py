"""`/config/KIND/NAME` and the notices of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from kavka.cluster.znodes.json_data import Fields, ZnodeError, encode_json

DEFAULT_ENTITY: Final = "<default>"


def node_name(text: str) -> str:
    """Any text as the name of a node, as Kafka writes users' and clients' names: percent signs for what is unusual."""
    name = quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    return name.replace(".", "%2E") if name in (".", "..") else name


def text_of_node(name: str) -> str:
    """The text that `node_name` made a name of."""
    return unquote(name, errors="replace")


class EntityConfig:
    """`/config/topics/T`, `/config/brokers/ID`, ...: what was set for that entity alone."""

    PARENT: Final = "/config"

    @staticmethod
    def path(entity_path: str) -> str:
        """`entity_path` is `topics/T`, `groups/G`, `brokers/1`, `brokers/<default>`, `users/U/clients/C`, ..."""
        return f"{EntityConfig.PARENT}/{entity_path}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        return encode_json({"version": 1, "config": dict(config)})

    @staticmethod
    def decode(entity_path: str, data: bytes) -> dict[str, str]:
        """No data means nothing is set: old tools leave such nodes."""
        if not data:
            return {}
        fields = Fields.parse(EntityConfig.path(entity_path), data)
        fields.integer("version", low=1, high=1)
        return fields.text_map("config")


class ConfigChange:
    """`/config/changes/config_change_NNNNNNNNNN`: the entity whose configuration was written. Version 2.

    `write` tells a writer whose connection was cut his own from another's of the same entity; Kafka passes over it.
    """

    PARENT: Final = "/config/changes"
    PREFIX: Final = "/config/changes/config_change_"

    @staticmethod
    def encode(entity_path: str, write: str | None = None) -> bytes:
        fields: dict[str, object] = {"version": 2, "entity_path": entity_path}
        if write is not None:
            fields["write"] = write
        return encode_json(fields)

    @staticmethod
    def decode(name: str, data: bytes) -> str:
        """The entity's path. Version 1 named type and entity apart."""
        fields = Fields.parse(f"{ConfigChange.PARENT}/{name}", data)
        if fields.integer("version", low=1, high=2) == 1:
            entity_path = f"{fields.text('entity_type')}/{fields.text('entity_name')}"
        else:
            entity_path = fields.text("entity_path")
        if not all(part not in ("", ".", "..") for part in entity_path.split("/")) or not entity_path.isprintable():
            raise ZnodeError(fields.path, f"no entity: {entity_path[:80]!r}")
        return entity_path
