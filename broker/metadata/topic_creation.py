"""Creating topics on a client's behalf: what Metadata with auto creation and CreateTopics share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kavka.broker.coordination.internal_topics import BY_NAME, new_topic
from kavka.broker.requests.handling import Context
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.cluster.controller.requests import NewTopic, TopicResult
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.services import Services


def may_create(context: Context, name: str) -> bool:
    """Whether the client may create that topic: any topic of the cluster, or this one."""
    return context.allows(Operation.CREATE, CLUSTER) or context.allows(Operation.CREATE, topic(name))


def auto_create(names: Sequence[str], services: "Services") -> Promise[list[TopicResult]]:
    """Have the controller create topics with the broker's default partition count and replication factor.

    The coordinators' own topics are set up as if a coordinator had asked for them.
    """
    return services.elected_controller.create_topics([_new_topic(name, services) for name in names])


def _new_topic(name: str, services: "Services") -> NewTopic:
    internal = BY_NAME.get(name)
    return NewTopic(name) if internal is None else new_topic(internal, services)
