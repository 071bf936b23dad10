"""Telling the controller that this broker's disks changed: it then asks which replicas are here (KIP-112).

The notice is Kafka's of a failed directory. Here it also says that orders were made up for which a disk had refused.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kavka.cluster.registry.base import RegistryError

if TYPE_CHECKING:
    from kavka.broker.partitions.replica_manager import ReplicaManager

log = logging.getLogger(__name__)


class DiskNotices:
    """What is to be told is told until it could be: a disk that is full for the logs is full for the registry, too.

    Threads: any. Two may tell the same twice, which is harmless.
    """

    __slots__ = ("_is_due", "_publish", "_replicas", "_was_refused")

    def __init__(self, replicas: "ReplicaManager", publish: Callable[[], object]) -> None:
        """`publish` writes the notice into the registry; it may raise RegistryError."""
        self._replicas = replicas
        self._publish = publish
        self._is_due = False
        self._was_refused = False

    def retry(self) -> None:
        """One pass of the scheduler: make up for refused orders, and tell what could not be told before."""
        if self._replicas.retry_refused():
            self._is_due = True
        if self._is_due:
            self.tell()
        self._replicas.note_recovery()

    def tell(self) -> None:
        """Tell the controller now, or if the registry refuses, in the next pass."""
        # Before: what changes meanwhile is told again.
        self._is_due = False
        try:
            self._publish()
        except RegistryError as error:
            self._is_due = True
            if not self._was_refused:
                log.warning("the controller can't be told of a changed disk, and will be later error=%r", str(error))
            self._was_refused = True
        else:
            self._was_refused = False
