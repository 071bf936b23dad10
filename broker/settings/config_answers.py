"""What DescribeConfigs and CreateTopics say of a resource's configuration."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.security.acl import CLUSTER, Operation, Resource, group, topic
from kavka.cluster.topic_names import validate_topic_name
from kavka.config.broker_config import BrokerConfig
from kavka.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from kavka.config.topic_config import TopicConfig
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Types of resources that have a configuration; the numbers are the wire's (ConfigResource.Type)."""


def topic_entries(broker: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a topic that has these overrides, by name."""
    return sorted(describe_topic(broker, TopicConfig.of(broker, dict(overrides))), key=lambda entry: entry.name)


def entries_of(resource_type: int, name: str, services: "Services") -> Iterable[ConfigEntry]:
    """Every setting of a resource.

    Raises BrokerError for a resource that is not known, or not this broker's to describe.
    """
    config = services.config.current
    if resource_type == TOPIC:
        validate_topic_name(name)
        if services.metadata.current.topic(name) is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(config, services.config.topic_config(name))
    if resource_type == BROKER:
        return describe_cluster_defaults(config) if own_broker_id(name, services) is None else describe_broker(config)
    if resource_type == GROUP:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(config, services.config.group_config(name))
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource_type}")


def own_broker_id(name: str, services: "Services") -> int | None:
    """This broker's id, or None for the name "" of all brokers. Raises BrokerError(INVALID_REQUEST) for others."""
    if not name:
        return None
    if not (name.isascii() and name.isdigit()):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name[:100]}")
    if name != str(services.broker_id):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {services.broker_id} or empty string, but received {name[:100]}",
        )
    return services.broker_id


def require_on(context: "Context", operation: Operation, resource_type: int, name: str) -> None:
    """Raise BrokerError unless the client may perform `operation` on the resource that has the configuration."""
    resource: Resource = CLUSTER
    if resource_type == TOPIC:
        resource = topic(name)
    elif resource_type == GROUP:
        resource = group(name)
    context.require(operation, resource)
