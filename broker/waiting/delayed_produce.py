"""A produce with acks=all that waits until its records are on every in-sync replica."""

from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.partition import Partition
from kavka.broker.requests.leader_hints import name_leaders
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.services import Services


class Awaited:
    """One partition of the request: what was appended, and the answer that says so unless replication fails.

    `leader_epoch` is from before the append. Once another broker has led since, the records may have been cut off, and
    others' be there.
    """

    __slots__ = ("answer", "leader_epoch", "partition", "required_offset", "settled")

    def __init__(
        self, partition: Partition, leader_epoch: int, required_offset: int, answer: PartitionProduceResponse
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.required_offset = required_offset
        self.answer = answer
        self.settled = False

    def look(self) -> bool:
        """Whether the wait for this partition is over; sets the answer's error where it failed."""
        if self.settled:
            return True
        code = self.partition.fate_of(self.leader_epoch, self.required_offset)
        if code is not None:
            self.settled = True
            self.answer.error_code = code
            if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self.answer.base_offset = -1
        return self.settled


class DelayedProduce(DelayedOperation):
    """Waits for all partitions of one request; those that are late when its time is up get REQUEST_TIMED_OUT.

    The connection's next request may run meanwhile: everything is appended.
    """

    __slots__ = ("_awaited", "_connection", "_response", "_services", "_version", "promise")

    def __init__(
        self,
        awaited: list[Awaited],
        response: ProduceResponse,
        connection: "Connection",
        services: "Services",
        version: int,
    ) -> None:
        super().__init__()
        self._services = services
        self._version = version
        self._awaited = awaited
        self._response = response
        self._connection = connection
        self.promise: Final[Promise[ProduceResponse | None]] = Promise(effects_complete=True)

    def is_satisfied(self) -> bool:
        return all([awaited.look() for awaited in self._awaited])

    def respond(self) -> None:
        self._connection.parked.pop(self, None)
        has_failed = False
        for awaited in self._awaited:
            if not awaited.look():
                awaited.answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            has_failed = has_failed or awaited.answer.error_code != 0
        if has_failed:
            name_leaders(self._services, self._connection.listener_name, self._response, self._version)
        self.promise.complete(self._response)
