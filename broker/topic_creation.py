"""Creating topics on a client's behalf: what Metadata with auto creation and CreateTopics share."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from kavka.broker.handling import Context
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.cluster.controller.requests import NewTopic, TopicResult

if TYPE_CHECKING:
    from kavka.broker.services import Services


def may_create(context: Context, name: str) -> bool:
    """Whether the client may create that topic: any topic of the cluster, or this one."""
    return context.allows(Operation.CREATE, CLUSTER) or context.allows(Operation.CREATE, topic(name))


def auto_create(names: Sequence[str], services: "Services") -> Future[list[TopicResult]]:
    """Have the controller create topics with the broker's default partition count and replication factor.

    Only the controller's own broker can do it; elsewhere the future fails with BrokerError(NOT_CONTROLLER).
    """
    return services.controller.create_topics([NewTopic(name) for name in names])
