"""CreatePartitions v0-3.

Behaviour
- The controller grows topics to a total partition count, with replicas where the request says or where it chooses.
  Records that are there stay where they are.
- The answer comes when the new partitions have leaders, or after the timeout (REQUEST_TIMED_OUT; always for a timeout
  of 0 or less, as in Kafka). A topic named twice is INVALID_REQUEST.
- Who changes more partitions than the controller mutation quota allows is refused, or before v3 paused (KIP-599).

Versions
- v2 is the first flexible one. v3: THROTTLING_QUOTA_EXCEEDED.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, counting, handles
from kavka.broker.security.acl import Operation, topic
from kavka.cluster.controller.requests import NewPartitions
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

STRICT_SINCE: Final = 3
"""From here on who has changed too many partitions is refused (KIP-599); before, only paused."""
LEAST_WAIT_MS: Final = 5_000
"""How long a request whose timeout is 0 may wait to learn about its errors."""


def _refused(request: CreatePartitionsRequest, code: ErrorCode, message: str | None) -> CreatePartitionsResponse:
    return _answer(request, {each.name: BrokerError(code, message) for each in request.topics})


@handles(CreatePartitionsRequest, versions="0-3", error_answer=_refused)
def create_partitions(
    request: CreatePartitionsRequest, context: Context, services: "Services"
) -> CreatePartitionsResponse | Promise[CreatePartitionsResponse]:
    names = Counter(each.name for each in request.topics)
    wanted: list[NewPartitions] = []
    outcomes: dict[str, BrokerError | None] = {}
    for each in request.topics:
        try:
            if names[each.name] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            context.require(Operation.ALTER, topic(each.name))
            wanted.append(_growth(each))
        except BrokerError as error:
            outcomes[each.name] = error
    if not wanted:
        return _answer(request, outcomes)
    growing = services.controller.create_partitions(wanted, request.validate_only, counting(context, STRICT_SINCE))
    timed_out = BrokerError(ErrorCode.REQUEST_TIMED_OUT)

    def respond(grown: dict[str, BrokerError | None]) -> CreatePartitionsResponse:
        if request.timeout_ms <= 0 and not request.validate_only:
            grown = {name: error or timed_out for name, error in grown.items()}
        return _answer(request, outcomes | grown)

    wait_ms = request.timeout_ms if request.timeout_ms > 0 else LEAST_WAIT_MS
    names_wanted = [each.name for each in wanted]
    return services.purgatory.within(wait_ms, growing, lambda: dict.fromkeys(names_wanted, timed_out)).then(respond)


def _growth(each: CreatePartitionsTopic) -> NewPartitions:
    if each.assignments is None:
        return NewPartitions(each.name, each.count)
    return NewPartitions(each.name, each.count, [assignment.broker_ids for assignment in each.assignments])


def _answer(request: CreatePartitionsRequest, outcomes: Mapping[str, BrokerError | None]) -> CreatePartitionsResponse:
    results = []
    for name in dict.fromkeys(each.name for each in request.topics):
        error = outcomes[name]
        if error is None:
            results.append(CreatePartitionsTopicResult(name=name, error_code=ErrorCode.NONE))
        else:
            results.append(
                CreatePartitionsTopicResult(
                    name=name, error_code=error.code, error_message=error.message or error.code.message
                )
            )
    return CreatePartitionsResponse(throttle_time_ms=0, results=results)
