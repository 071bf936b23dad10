"""What was changed while brokers ran before: read once, at a start."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kavka.cluster.entity_configs import read_config, read_configs, write_config
from kavka.cluster.znodes.config import DEFAULT_ENTITY, text_of_node
from kavka.config.topic_config import UNREADABLE

if TYPE_CHECKING:
    from kavka.broker.settings.dynamic_config import DynamicConfig
    from kavka.cluster.registry.base import Registry


def begin_with_stored(config: "DynamicConfig", registry: "Registry", broker_id: int) -> Collection[str]:
    """Have what is stored count; the names of the broker's own settings and the cluster's among it.

    Raises RegistryError, ZnodeError, ConfigError.
    """
    # What cannot be read may be a limit, or keep records: it is no reason to go on without.
    defaults, own = (read_config(registry, f"brokers/{each}") for each in (DEFAULT_ENTITY, str(broker_id)))
    if config.stored_settings.renewed(own) is not None:
        own = write_config(registry, f"brokers/{broker_id}", lambda stored: _renewed(config, stored))
    config.broker_started(defaults, own)
    for topic, stored in read_configs(registry, "topics", {UNREADABLE: ""}).items():
        config.topic_changed(topic, stored)
    for group, stored in read_configs(registry, "groups").items():
        config.group_changed(text_of_node(group), stored)
    return defaults.keys() | own.keys()


def _renewed(config: "DynamicConfig", stored: Mapping[str, str]) -> dict[str, str]:
    """Passwords of `password.encoder.old.secret`, encrypted with the present one."""
    return config.stored_settings.renewed(stored) or dict(stored)
