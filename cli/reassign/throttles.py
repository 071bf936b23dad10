"""Limits on what a reassignment may take of the network and the disks: set before it, removed after it.

Rates are brokers' settings, and which replicas they hold for are topics' (KIP-73, KIP-113), as Kafka's tool has them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.cli.reassign.moves import Move, brokers_of, follower_throttles, leader_throttles
from kavka.client.admin import AlterConfigOp, AlterConfigOpType, ConfigResource
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


def throttle_moves(
    admin: "Admin", found: Mapping[TopicPartition, Move], bytes_per_s: int, living: Collection[int]
) -> None:
    """Have brokers copy these moves between each other no faster than this."""
    leaders, followers = leader_throttles(found), follower_throttles(found)
    changes = {
        ConfigResource.topic(topic): [
            AlterConfigOp(LEADER_REPLICAS, leaders[topic]),
            AlterConfigOp(FOLLOWER_REPLICAS, followers[topic]),
        ]
        for topic in leaders
    }
    admin.incremental_alter_configs(changes)
    rates = [AlterConfigOp(LEADER_RATE, str(bytes_per_s)), AlterConfigOp(FOLLOWER_RATE, str(bytes_per_s))]
    # A broker that is down cannot be asked, and copies nothing.
    admin.incremental_alter_configs(
        {ConfigResource.broker(each): rates for each in brokers_of(found) if each in living}
    )


def throttle_log_dirs(admin: "Admin", broker_ids: Iterable[int], bytes_per_s: int) -> None:
    """Have these brokers copy between their own log directories no faster than this."""
    rate = [AlterConfigOp(LOG_DIR_RATE, str(bytes_per_s))]
    admin.incremental_alter_configs({ConfigResource.broker(each): rate for each in set(broker_ids)})


def clear_throttles(admin: "Admin", topics: Iterable[str], broker_ids: Iterable[int]) -> None:
    """Remove all of these throttles, whoever has set them: who had which before is known to nobody."""
    by_topic = [AlterConfigOp(name, None, AlterConfigOpType.DELETE) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    by_broker = [
        AlterConfigOp(name, None, AlterConfigOpType.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
    ]
    admin.incremental_alter_configs({ConfigResource.broker(each): by_broker for each in sorted(set(broker_ids))})
    admin.incremental_alter_configs({ConfigResource.topic(each): by_topic for each in sorted(set(topics))})
