"""Creating topics on a client's behalf: what Metadata with auto creation and CreateTopics share."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kavka.broker.coordination.internal_topics import BY_NAME, new_topic
from kavka.broker.requests.handling import Context
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.cluster.controller.requests import NewTopic, TopicResult
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.services import Services


def creatable(names: Collection[str], context: Context) -> Collection[str]:
    """Those of the topics that the client may create: as any topic of the cluster, or each by itself."""
    if not names or context.allows(Operation.CREATE, CLUSTER, quiet=True):
        return names
    return {name for name in names if context.allows(Operation.CREATE, topic(name))}


def auto_create(names: Sequence[str], services: "Services") -> Promise[list[TopicResult]]:
    """Have the controller create topics with the broker's default partition count and replication factor.

    The coordinators' own topics are set up as if a coordinator had asked for them.
    """
    return services.elected_controller.create_topics([_new_topic(name, services) for name in names])


def _new_topic(name: str, services: "Services") -> NewTopic:
    internal = BY_NAME.get(name)
    return NewTopic(name) if internal is None else new_topic(internal, services)
