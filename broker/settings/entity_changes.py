"""Who hears of other settings for what is neither a topic nor a broker: groups, users, clients, addresses."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kavka.cluster.znodes.config import text_of_node

if TYPE_CHECKING:
    from kavka.broker.services import Services


def entity_changed(services: "Services", entity_path: str, stored: Mapping[str, str]) -> None:
    """What is set for `groups/G`, `users/U`, `users/U/clients/C`, `clients/C` or `ips/I` is now `stored`."""
    kind, _, name = entity_path.partition("/")
    if kind == "groups":
        services.config.group_changed(text_of_node(name), stored)
    elif kind == "users" and services.scram_credentials is not None:
        services.scram_credentials.node_changed(name, stored)
