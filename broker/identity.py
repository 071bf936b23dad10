"""Who this broker is: its id and its cluster's, agreed between settings, log directories and registry."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kavka.cluster.broker_registration import cluster_id, generate_broker_id
from kavka.cluster.controller.requests import ImportedTopic
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.topic_import import import_topics
from kavka.cluster.znodes.topic import TOPICS_PATH
from kavka.storage.adoption import AdoptionError, survey

if TYPE_CHECKING:
    from kavka.cluster.registry.base import Registry
    from kavka.config.broker_config import BrokerConfig
    from kavka.storage.files import Files
    from kavka.storage.log_directories import LogDirectories
    from kavka.storage.meta_properties import MetaProperties

log = logging.getLogger(__name__)


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


def adopt_topics(
    directories: "LogDirectories", files: "Files", registry: "Registry", broker_id: int
) -> Mapping[str, Mapping[str, str]]:
    """Enter the topics of a stopped Kafka into an empty registry, and say which configuration each is kept with.

    Nothing happens where the registry knows topics already. Raises AdoptionError for topics while a directory is
    offline: they are entered once, and what lies there would be missing for good.
    """
    if registry.children(TOPICS_PATH):
        return {}
    found = survey([directory.path for directory in directories.online], files)
    if not found:
        return {}
    for directory in directories:
        if directory.failure is not None:
            raise AdoptionError(
                f"the topics of a stopped Kafka are adopted when all of log.dirs can be used, but {directory.path} "
                f"cannot: {directory.failure}"
            )
    import_topics(
        registry,
        broker_id,
        [
            ImportedTopic(
                topic.name,
                topic.partition_count,
                topic.topic_id if topic.topic_id is not None else ZERO_ID,
                max(topic.leader_epochs.values()),
                topic.config,
            )
            for topic in found
        ],
    )
    log.warning(
        "adopted the topics of a stopped Kafka, kept without retention until their configurations are set: "
        "see kavka storage adopt topics=%d",
        len(found),
    )
    return {topic.name: topic.config for topic in found}
