"""Whether partitions that this broker does not know are gone for good, or just not known here yet.

Orders to lead may overtake metadata: a coordinator that takes a partition over can have decisions about topics that
were created a moment ago. Their markers must not be given up, so the registry is asked, which knows.
"""

import logging
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from kavka.cluster.registry.base import RegistryError
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import TopicAssignment, TopicDeletion

if TYPE_CHECKING:
    from kavka.cluster.registry.base import Registry

TopicPartition: TypeAlias = tuple[str, int]

log = logging.getLogger(__name__)


class DeletedPartitions:
    """Asks a cluster's registry.

    Threads: any. `_looking` is held by the one look there is at a time: it may wait for ZooKeeper as long as that is
    away, and the threads that may wait are few.
    """

    def __init__(self, registry: "Registry", execute: Callable[[Callable[[], None]], None]) -> None:
        """`execute` runs a piece of work soon, on a thread that may wait."""
        self._registry: Final = registry
        self._execute: Final = execute
        self._looking: Final = threading.Lock()

    def find(
        self, partitions: Collection[TopicPartition], done: Callable[[Collection[TopicPartition]], object]
    ) -> None:
        """Give `done`, once, those that are deleted, or are wished to be; none where that is not known now."""
        if not self._looking.acquire(blocking=False):
            done(())
            return

        def look() -> None:
            try:
                found = self._deleted(partitions)
            except (RegistryError, ZnodeError) as failure:
                log.warning("it is not known whether topics are deleted error=%r", str(failure))
                found = []
            finally:
                self._looking.release()
            done(found)

        try:
            self._execute(look)
        except BaseException:
            self._looking.release()
            raise

    def _deleted(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        topics = sorted({topic for topic, _ in partitions})
        assigned = self._registry.get_many([TopicAssignment.path(topic) for topic in topics])
        wishes = self._registry.get_many([TopicDeletion.path(topic) for topic in topics])
        there: set[TopicPartition] = set()
        for topic, found, wish in zip(topics, assigned, wishes, strict=True):
            if found is not None and wish is None:
                there.update((topic, index) for index in TopicAssignment.decode(topic, found[0]).replicas)
        return [each for each in partitions if each not in there]
