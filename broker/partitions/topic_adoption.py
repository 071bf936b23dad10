"""Topics of a stopped Kafka that lie in `log.dirs`: looked for once, entered once; and which logs belong to a topic.

first start       topics are entered; where a Kafka was, all of `log.dirs` must be usable: what lies in another would be
                  missing for good
later starts      nothing is entered; a folder whose topic the registry does not know is left alone, and named
storage adopt     enters what the registry does not know yet: its operator asks for it
"""

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

from kavka.cluster.controller.requests import ImportedTopic
from kavka.cluster.registry.base import Registry, RegistryError, get_readable
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.topic_import import import_topics
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.log_dirs_survey import LOG_DIRS_SURVEYED_PATH
from kavka.cluster.znodes.topic import TOPICS_PATH, TopicAssignment
from kavka.storage.adoption import AdoptedTopic, AdoptionError, may_be_owned, survey
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.offset_checkpoint import TopicPartition

log = logging.getLogger(__name__)


def find_topics(
    directories: LogDirectories, files: Files, registry: Registry, *, asked: bool = False
) -> list[AdoptedTopic]:
    """The topics to be entered. Changes nothing: to be called before the registry learns whose it is.

    Unless `asked` only at a first start, only where meta.properties says whose the logs are. Raises AdoptionError,
    also at a first start with a directory offline where others are somebody's, or where it is itself or may be: its
    disk works, but nobody may look. Where nobody was it goes on without it, as Kafka's: if a broken disk is somebody's
    after all, the next start with it is refused for the cluster's id.
    """
    is_first = not registry.children(TOPICS_PATH) and registry.exists(LOG_DIRS_SURVEYED_PATH) is None
    if not is_first and not asked:
        return []
    known = {topic: assignment.topic_id for topic, assignment in _assignments(registry).items()}
    found = survey([each.path for each in directories.online], files, known=known, need_owner=not asked)
    for directory in directories:
        if directory.failure is not None and (
            found or (is_first and (directories.are_owned or may_be_owned(directory.path, files)))
        ):
            what = "a first start" if is_first else "an adoption"
            raise AdoptionError(
                f"{what} needs all of log.dirs, for topics of a stopped Kafka may lie in each, but {directory.path} "
                f"cannot be used: {directory.failure}"
            )
    return found


def enter_topics(registry: Registry, broker_id: int, found: Sequence[AdoptedTopic]) -> None:
    """Enter what `find_topics` found, and that it was looked for, in one write: a crash leaves all or nothing."""
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
    if found:
        log.warning(
            "adopted the topics of a stopped Kafka, kept without retention until their configurations are set: "
            "see kavka storage adopt topics=%d",
            len(found),
        )


class RegisteredPartitions:
    """`KnownPartitions`: those that a registry had. Immutable."""

    def __init__(self, assignments: Mapping[str, TopicAssignment]) -> None:
        self._assignments = assignments

    def __call__(self, topic: str, partition: int) -> bytes | None:
        assignment = self._assignments.get(topic)
        if assignment is None or partition not in assignment.replicas:
            return None
        return assignment.topic_id or ZERO_ID

    def of_broker(self, broker_id: int) -> Iterator[TopicPartition]:
        """Those that were assigned to the broker."""
        for topic, assignment in self._assignments.items():
            for partition, replicas in assignment.replicas.items():
                if broker_id in replicas:
                    yield topic, partition


def known_partitions(registry: Registry) -> RegisteredPartitions:
    """Which partitions the registry has, as it is now. A topic that can't be read has none."""
    return RegisteredPartitions(_assignments(registry))


def registered_ids(registry: Registry, topics: Collection[str]) -> dict[str, bytes]:
    """The ids of these topics as the registry has them now; of none that it can't tell of."""
    ids: dict[str, bytes] = {}
    try:
        names = sorted(topics)
        nodes = get_readable(registry, [TopicAssignment.path(each) for each in names])
    except RegistryError as error:
        log.warning("nobody can tell whose names are taken: %s", error)
        return ids
    for topic, node in zip(names, nodes, strict=True):
        with contextlib.suppress(ZnodeError):
            if node is not None and (topic_id := TopicAssignment.decode(topic, node[0]).topic_id) is not None:
                ids[topic] = topic_id
    return ids


def _assignments(registry: Registry) -> dict[str, TopicAssignment]:
    """Of all topics; none of partitions for one that can't be read."""
    topics = registry.children(TOPICS_PATH)
    assignments: dict[str, TopicAssignment] = {}
    for topic, node in zip(
        topics, get_readable(registry, [TopicAssignment.path(each) for each in topics]), strict=True
    ):
        try:
            if node is not None:
                assignments[topic] = TopicAssignment.decode(topic, node[0])
        except ZnodeError as error:
            log.error("topic %s is left out: %s", topic, error)
            assignments[topic] = TopicAssignment({}, None)
    return assignments
