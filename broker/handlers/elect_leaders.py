"""ElectLeaders v0-2.

Behaviour
- The controller elects preferred leaders, or leaders at all where there is none, of the partitions named or of all.
  Each partition has its own outcome; of all, those that need no election are not mentioned.
- The answer comes when the new leaders are known to the brokers that can be reached, or after the request's timeout
  (REQUEST_TIMED_OUT), which leaves the elections going on. Brokers that are not the controller say NOT_CONTROLLER.
- Not done: nothing.

Versions
- v0: preferred leaders alone. v1: unclean ones too, where no replica in sync lives and messages may be lost (KIP-460);
  an error for the whole request. v2 is the first flexible one.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.controller.requests import ElectionType
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

Outcomes = Mapping[tuple[str, int], BrokerError | None]


def _refused(request: ElectLeadersRequest, code: ErrorCode, message: str | None) -> ElectLeadersResponse:
    answer = _answer(dict.fromkeys(_named(request) or (), BrokerError(code, message)), code)
    if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        # Kafka has no words for it.
        for result in [each for topic in answer.replica_election_results for each in topic.partition_result]:
            result.error_message = None
    return answer


@handles(ElectLeadersRequest, versions="0-2", error_answer=_refused)
def elect_leaders(
    request: ElectLeadersRequest, context: Context, services: "Services"
) -> ElectLeadersResponse | Promise[ElectLeadersResponse]:
    context.require(Operation.ALTER, CLUSTER)
    if request.election_type not in tuple(ElectionType):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"There is no election type {request.election_type}.")
    electing = services.controller.elect_leaders(ElectionType(request.election_type), _named(request))
    return services.purgatory.within(max(0, request.timeout_ms), electing, _late).then(_answer)


def _named(request: ElectLeadersRequest) -> list[tuple[str, int]] | None:
    """None for all partitions."""
    if request.topic_partitions is None:
        return None
    return [(each.topic, index) for each in request.topic_partitions for index in each.partitions]


def _late() -> NoReturn:
    raise BrokerError(ErrorCode.REQUEST_TIMED_OUT)


def _answer(outcomes: Outcomes, code: ErrorCode = ErrorCode.NONE) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for (topic, partition), error in outcomes.items():
        by_topic.setdefault(topic, []).append(
            PartitionResult(
                partition_id=partition,
                error_code=error.code if error is not None else ErrorCode.NONE,
                error_message=(error.message or error.code.message) if error is not None else None,
            )
        )
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=results) for topic, results in by_topic.items()
        ],
    )
