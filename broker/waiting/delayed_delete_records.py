"""A DeleteRecords that waits until the followers' logs begin where the leader's does: none may bring back what went."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_records import DeleteRecordsPartitionResult, DeleteRecordsResponse

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataCache
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.partition import Partition


def low_watermark(partition: "Partition", log_start_offset: int, alive: Collection[int]) -> int:
    """Where the last of the leader's and the live followers' logs begins; -1 where one has not said so yet."""
    starts = [known.log_start_offset for broker_id, known in list(partition.followers.items()) if broker_id in alive]
    return min([log_start_offset, *starts])


class AwaitedStart:
    """One partition of the request, whose log begins at `required_offset` here by now, or later."""

    __slots__ = ("answer", "partition", "required_offset", "settled")

    def __init__(self, partition: "Partition", required_offset: int, answer: DeleteRecordsPartitionResult) -> None:
        self.partition: Final = partition
        self.required_offset: Final = required_offset
        self.answer: Final = answer
        self.settled = False

    def look(self, alive: Collection[int]) -> bool:
        """Whether the wait for this partition is over; sets its answer."""
        if self.settled:
            return True
        log = self.partition.log
        if log is None or not self.partition.role.is_leader:
            self.settled = True
            code = ErrorCode.KAFKA_STORAGE_ERROR if log is None else ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.answer.error_code, self.answer.low_watermark = code, -1
            return True
        self.answer.low_watermark = low_watermark(self.partition, log.log_start_offset, alive)
        self.settled = self.answer.low_watermark >= self.required_offset
        return self.settled


class DelayedDeleteRecords(DelayedOperation):
    """Waits for all partitions of one request; those that are late when its time is up get REQUEST_TIMED_OUT."""

    __slots__ = ("_awaited", "_connection", "_metadata", "_response", "promise")

    def __init__(
        self,
        awaited: list[AwaitedStart],
        response: DeleteRecordsResponse,
        metadata: "MetadataCache",
        connection: "Connection",
    ) -> None:
        super().__init__()
        self._awaited = awaited
        self._response = response
        self._metadata = metadata
        self._connection = connection
        self.promise: Final[Promise[DeleteRecordsResponse]] = Promise(effects_complete=True)

    def is_satisfied(self) -> bool:
        alive = self._metadata.current.brokers
        return all([awaited.look(alive) for awaited in self._awaited])

    def respond(self) -> None:
        self._connection.parked.pop(self, None)
        alive = self._metadata.current.brokers
        for awaited in self._awaited:
            if not awaited.look(alive):
                awaited.answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.promise.complete(self._response)
