"""Topics found in log directories that come from elsewhere, entered into an empty tree as they are."""

from __future__ import annotations

from collections.abc import Sequence

from kavka.cluster.controller.requests import ImportedTopic
from kavka.cluster.registry.base import Create, Operation, Registry
from kavka.cluster.topic_ids import ZERO_ID, new_topic_id
from kavka.cluster.topic_names import validate_topic_name
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.log_dirs_survey import LOG_DIRS_SURVEYED_PATH
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment


def import_topics(registry: Registry, broker_id: int, topics: Sequence[ImportedTopic]) -> None:
    """Enter topics that this broker holds alone, with their ids, configurations and leader epochs.

    Also notes that the log directories have been looked through. To be called before a controller is elected, which
    then leads the topics like any others. All or nothing is entered. Raises BrokerError(INVALID_TOPIC_EXCEPTION) for an
    impossible name, NodeExistsError for one that is known already.
    """
    operations: list[Operation] = []
    for topic in topics:
        validate_topic_name(topic.name)
        partitions = range(topic.partition_count)
        topic_id = new_topic_id() if topic.topic_id == ZERO_ID else topic.topic_id
        assignment = TopicAssignment(dict.fromkeys(partitions, (broker_id,)), topic_id)
        state = PartitionState(broker_id, topic.leader_epoch, (broker_id,), controller_epoch=0)
        operations.append(Create(EntityConfig.path(f"topics/{topic.name}"), EntityConfig.encode(topic.configs)))
        operations.append(Create(TopicAssignment.path(topic.name), assignment.encode()))
        operations.append(Create(TopicAssignment.partitions_path(topic.name)))
        for partition in partitions:
            operations.append(Create(f"{TopicAssignment.partitions_path(topic.name)}/{partition}"))
            operations.append(Create(PartitionState.path(topic.name, partition), state.encode()))
    if registry.exists(LOG_DIRS_SURVEYED_PATH) is None:
        operations.append(Create(LOG_DIRS_SURVEYED_PATH))
    if operations:
        registry.multi(operations)
