"""The consumer: reads records, by itself or as a member of a group.

What its users name is found here: `from kavka.client.consumer import Consumer, RebalanceListener`. Each is loaded when
it is wanted, as producers look in here too, for a group's metadata.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer as Consumer
    from kavka.client.consumer.group.assignors.assignor import Assignor as Assignor
    from kavka.client.consumer.group.assignors.assignor import MemberAssignment as MemberAssignment
    from kavka.client.consumer.group.assignors.assignor import MemberSubscription as MemberSubscription
    from kavka.client.consumer.group.assignors.assignor import PartitionAssignor as PartitionAssignor
    from kavka.client.consumer.group.errors import CommitFailedError as CommitFailedError
    from kavka.client.consumer.group.errors import RetriableCommitFailedError as RetriableCommitFailedError
    from kavka.client.consumer.group.port import ConsumerGroupMetadata as ConsumerGroupMetadata
    from kavka.client.consumer.group.port import GroupMembershipOperation as GroupMembershipOperation
    from kavka.client.consumer.group.port import OffsetAndMetadata as OffsetAndMetadata
    from kavka.client.consumer.group.port import RebalanceListener as RebalanceListener
    from kavka.client.consumer.group.port import SubscriptionPattern as SubscriptionPattern
    from kavka.client.consumer.records import ConsumerRecord as ConsumerRecord
    from kavka.client.topic_partition import TopicPartition as TopicPartition

_CONSUMER: Final = "kavka.client.consumer"
_PORT: Final = f"{_CONSUMER}.group.port"
_ASSIGNOR: Final = f"{_CONSUMER}.group.assignors.assignor"
_ERRORS: Final = f"{_CONSUMER}.group.errors"
_LATER: Final = {
    "Assignor": _ASSIGNOR,
    "CommitFailedError": _ERRORS,
    "Consumer": f"{_CONSUMER}.consumer",
    "ConsumerGroupMetadata": _PORT,
    "ConsumerRecord": f"{_CONSUMER}.records",
    "GroupMembershipOperation": _PORT,
    "MemberAssignment": _ASSIGNOR,
    "MemberSubscription": _ASSIGNOR,
    "OffsetAndMetadata": _PORT,
    "PartitionAssignor": _ASSIGNOR,
    "RebalanceListener": _PORT,
    "RetriableCommitFailedError": _ERRORS,
    "SubscriptionPattern": _PORT,
    "TopicPartition": "kavka.client.topic_partition",
}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {_CONSUMER!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
