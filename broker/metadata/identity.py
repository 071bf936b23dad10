"""Who this broker is: its id and its cluster's, agreed between settings, log directories and registry."""

from typing import TYPE_CHECKING, NamedTuple

from kavka.cluster.broker_registration import cluster_id, generate_broker_id

if TYPE_CHECKING:
    from kavka.cluster.registry.base import Registry
    from kavka.config.broker_config import BrokerConfig
    from kavka.storage.meta_properties import MetaProperties


class IdentityError(Exception):
    """Settings, log directories and registry contradict each other."""


class Identity(NamedTuple):
    """The broker's id, and its cluster's."""

    broker_id: int
    cluster_id: str


def establish_identity(config: "BrokerConfig", owner: "MetaProperties", registry: "Registry") -> Identity:
    """Find out, or decide at the first start, who this broker is.

    `owner` is what the log directories say. Raises IdentityError where they belong to another broker or cluster.
    """
    found_cluster_id = cluster_id(registry, owner.cluster_id)
    if owner.cluster_id is not None and owner.cluster_id != found_cluster_id:
        raise IdentityError(
            f"the log directories belong to cluster {owner.cluster_id}, the registry to cluster {found_cluster_id}"
        )
    broker_id = config.broker_id
    if broker_id >= 0 and owner.broker_id not in (None, broker_id):
        raise IdentityError(
            f"broker.id is {broker_id}, but meta.properties in the log directories says {owner.broker_id}: "
            "another broker's directories, or another broker's settings"
        )
    if broker_id < 0:
        if owner.broker_id is not None:
            broker_id = owner.broker_id
        elif config.broker_id_generation_enable:
            broker_id = generate_broker_id(registry, config.reserved_broker_max_id)
        else:
            raise IdentityError("broker.id is not set, and broker.id.generation.enable=false")
    return Identity(broker_id, found_cluster_id)
