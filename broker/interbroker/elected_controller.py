"""What this broker asks of the controller, wherever it is: in this process by a call, elsewhere by a request."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kavka.broker.interbroker.controller_channel import ControllerChannel
from kavka.broker.partitions.alter_partition_manager import downgraded
from kavka.client import ClientError, RequestBuilder
from kavka.cluster.controller.requests import NewTopic, ProducerIdBlock, TopicResult
from kavka.cluster.interbroker_protocol import InterBrokerProtocol
from kavka.cluster.promise import Promise
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kavka.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from kavka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.client.call import Sendable
    from kavka.cluster.controller import Controller

MAKES_COUNTS_UP: Final = 4
"""CreateTopics: from this version on the controller decides on counts that are not given (KIP-464)."""

T = TypeVar("T")


class ElectedController:
    """The controller of the cluster.

    `open_channel(lane)` gives a ControllerChannel; what is asked for on one of them waits for nothing on another.
    `own_epoch()` is the epoch of this broker's registration.

    Threads: any. Promises are settled on the controller's thread or the `inter-broker` one.
    """

    def __init__(
        self,
        own: "Controller",
        broker_id: int,
        own_epoch: Callable[[], int],
        protocol: InterBrokerProtocol,
        open_channel: Callable[[str], ControllerChannel],
        *,
        timeout_ms: float,
    ) -> None:
        self._own: Final = own
        self._broker_id: Final = broker_id
        self._own_epoch: Final = own_epoch
        self._protocol: Final = protocol
        self._timeout_ms: Final = timeout_ms
        self._isr_changes: Final = open_channel("isr-changes")
        self._topics: Final = open_channel("topics")
        self._producer_ids: Final = open_channel("producer-ids")
        self._shutdown: Final = open_channel("shutdown")

    def create_topics(self, topics: Sequence[NewTopic]) -> Promise[list[TopicResult]]:
        """As `Controller.create_topics`; the results of another broker's controller have no counts."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=int(self._timeout_ms), validate_only=False
        )

        def understand(answer: CreateTopicsResponse) -> list[TopicResult]:
            results = {each.name: each for each in answer.topics}
            return [_result(topic.name, results.get(topic.name)) for topic in topics]

        return self._ask(
            lambda: self._own.create_topics(topics),
            self._topics,
            request,
            understand,
            versions=(MAKES_COUNTS_UP, 7),
            timeout_ms=self._timeout_ms,
        )

    def allocate_producer_id_block(self) -> Promise[ProducerIdBlock]:
        """A thousand producer ids for this broker."""
        epoch = self._own_epoch()

        def understand(answer: AllocateProducerIdsResponse) -> ProducerIdBlock:
            _check(answer)
            if answer.producer_id_start < 0 or answer.producer_id_len <= 0:
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller gave a block without producer ids")
            return ProducerIdBlock(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len - 1)

        return self._ask(
            lambda: self._own.allocate_producer_id_block(self._broker_id, epoch),
            self._producer_ids,
            AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=epoch),
            understand,
            timeout_ms=self._timeout_ms,
        )

    def alter_partition(
        self, request: AlterPartitionRequest, on_answer: Callable[[AlterPartitionResponse | BrokerError], None]
    ) -> None:
        """See `AlterPartitionManager`. It is asked for as long as this broker runs."""

        def answered(answer: AlterPartitionResponse | None, error: BaseException | None) -> None:
            on_answer(answer if answer is not None else _as_broker_error(error))

        self._ask(
            lambda: self._own.alter_partition(request),
            self._isr_changes,
            RequestBuilder(ApiKey.ALTER_PARTITION, lambda version: downgraded(request, version)),
            _as_it_is,
        ).watch(answered)

    def controlled_shutdown(self, timeout_ms: float) -> Promise[list[tuple[str, int]]]:
        """Have leaderships moved away from this broker; gives the partitions that it still leads.

        Fails with STALE_BROKER_EPOCH while it is not registered: without an epoch the request could count for its next
        start, which would be told to stop all it has.
        """
        epoch = self._own_epoch()
        if epoch == -1:
            refused: Promise[list[tuple[str, int]]] = Promise()
            refused.fail(BrokerError(ErrorCode.STALE_BROKER_EPOCH, "this broker has no session with the registry"))
            return refused
        version = self._protocol.version(ApiKey.CONTROLLED_SHUTDOWN)

        def understand(answer: ControlledShutdownResponse) -> list[tuple[str, int]]:
            _check(answer)
            return [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]

        return self._ask(
            lambda: self._own.controlled_shutdown(self._broker_id, epoch),
            self._shutdown,
            ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=epoch),
            understand,
            versions=(version, version),
            timeout_ms=timeout_ms,
        )

    def close(self) -> None:
        """Answer what waits for a controller elsewhere."""
        for channel in (self._isr_changes, self._topics, self._producer_ids, self._shutdown):
            channel.close()

    def _ask(
        self,
        call: Callable[[], Promise[T]],
        channel: ControllerChannel,
        request: "Sendable",
        understand: Callable[[Any], T],
        *,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
    ) -> Promise[T]:
        """Call the controller of this process while it is the one; else, or when it was deposed, send the request."""

        def send() -> Promise[T]:
            promise: Promise[T] = Promise()

            def answered(answer: Any) -> None:
                if isinstance(answer, BaseException):
                    promise.fail(_as_broker_error(answer))
                else:
                    promise.settle_by(lambda: understand(answer))

            channel.send(request, answered, versions=versions, timeout_ms=timeout_ms)
            return promise

        def deposed(error: BaseException) -> Promise[T]:
            if isinstance(error, BrokerError) and error.code is ErrorCode.NOT_CONTROLLER:
                return send()
            raise error

        return call().then(_as_it_is, deposed) if self._own.is_active else send()


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _result(name: str, answer: Any) -> TopicResult:
    if answer is None:
        return TopicResult(name, ZERO_UUID, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller left it out"))
    if answer.error_code != ErrorCode.NONE:
        return TopicResult(name, ZERO_UUID, BrokerError(_code(answer.error_code), answer.error_message))
    return TopicResult(name, answer.topic_id, None)


def _check(answer: Any) -> None:
    """Raise the error of the whole answer."""
    if answer.error_code != ErrorCode.NONE:
        raise BrokerError(_code(answer.error_code))


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _as_broker_error(error: BaseException | None) -> BrokerError:
    if isinstance(error, BrokerError):
        return error
    code = ErrorCode.REQUEST_TIMED_OUT if isinstance(error, ClientError) else ErrorCode.UNKNOWN_SERVER_ERROR
    return BrokerError(code, str(error))


def _as_it_is(answer: T) -> T:
    return answer
