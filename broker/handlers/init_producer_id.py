"""InitProducerId v0-5.

Behaviour
- Who may write to any topic at all may be idempotent (KIP-679), as may who has the cluster's right of that name.
- An idempotent producer (no transactional id) gets a new producer id with epoch 0, from this broker's block; also one
  that brings an id of its own, whose sequence it could not save (KIP-360).
- A transactional producer gets the id's producer id with an epoch of its own, which fences those before it. A
  transaction that it finds is aborted first; until that is complete the answer is CONCURRENT_TRANSACTIONS.
- The answer waits when the controller has to hand out a new block; the connection's next request waits with it.
- Not done: nothing.

Versions
- v3: the producer's id and epoch, both or neither (KIP-360). v4: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH.
- v6 (two-phase commit, KIP-939) is not stable and not served.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation, ResourceType, transactional_id
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services

FENCED_SINCE: Final = 4


def _refused(_request: InitProducerIdRequest, code: ErrorCode, _message: str | None) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_id=-1, producer_epoch=-1)


@handles(InitProducerIdRequest, versions="0-5", error_answer=_refused)
def init_producer_id(
    request: InitProducerIdRequest, context: Context, services: "Services"
) -> InitProducerIdResponse | Promise[InitProducerIdResponse]:
    if request.transactional_id is not None:
        context.require(Operation.WRITE, transactional_id(request.transactional_id))
        if not request.transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
    elif not context.allows(Operation.IDEMPOTENT_WRITE, CLUSTER, quiet=True) and not context.allows_on_any(
        Operation.WRITE, ResourceType.TOPIC
    ):
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "producer id and epoch come together or not at all")
    if request.transactional_id is not None:
        return _transactional(request, request.transactional_id, context.api_version, services)
    return services.producer_ids.next_id().then(_granted).or_response()


def _transactional(
    request: InitProducerIdRequest, transactional_id: str, api_version: int, services: "Services"
) -> Promise[InitProducerIdResponse]:
    promise: Promise[InitProducerIdResponse] = Promise()

    def reply(answer: InitProducerIdResponse | ErrorCode) -> None:
        if not isinstance(answer, ErrorCode):
            promise.complete(answer)
        elif answer is ErrorCode.PRODUCER_FENCED and api_version < FENCED_SINCE:
            promise.complete(_refused(request, ErrorCode.INVALID_PRODUCER_EPOCH, None))
        else:
            promise.complete(_refused(request, answer, None))

    services.transactions.run(
        transactional_id, lambda shard: shard.init_producer_id(request, reply), lambda error: reply(error.code)
    )
    return promise


def _granted(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )
