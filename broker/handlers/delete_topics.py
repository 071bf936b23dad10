"""DeleteTopics v0-6.

Behaviour
- The controller deletes the topics; the answer comes when they are gone from the metadata, or after the request's
  timeout, which leaves the deletion going on (REQUEST_TIMED_OUT; always for a timeout of 0 or less, as in Kafka).
- With `delete.topic.enable=false` nothing is deleted: TOPIC_DELETION_DISABLED, before v3 INVALID_REQUEST.
- Who changes more partitions than the controller mutation quota allows is refused, or before v5 paused (KIP-599).

Versions
- v1: throttle time. v5: error messages. v6: topics by id (KIP-516); name and id together are INVALID_REQUEST. A topic
  by id is answered with its name, unless the client may not describe it: then TOPIC_AUTHORIZATION_FAILED without one.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID, MetadataSnapshot
from kavka.broker.requests.handling import Context, counting, handles
from kavka.broker.security.acl import Operation, topic
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

STRICT_SINCE: Final = 5
"""From here on who has changed too many partitions is refused (KIP-599); before, only paused."""
LEAST_WAIT_MS: Final = 5_000
"""How long a request whose timeout is 0 may wait to learn about its errors."""


def _refused(request: DeleteTopicsRequest, code: ErrorCode, message: str | None) -> DeleteTopicsResponse:
    error = BrokerError(code, message)
    by_name = [DeleteTopicState(name=name, topic_id=ZERO_TOPIC_ID) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[_result(each, error) for each in request.topics or by_name])


@handles(DeleteTopicsRequest, versions="0-6", error_answer=_refused)
def delete_topics(
    request: DeleteTopicsRequest, context: Context, services: "Services"
) -> DeleteTopicsResponse | Promise[DeleteTopicsResponse]:
    if not services.config.current.delete_topic_enable:
        raise BrokerError(ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED)
    if not services.controller.is_active:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    wanted, refused = _sort_out(request, context, services.metadata.current)
    if not wanted:
        return DeleteTopicsResponse(responses=refused)
    deletion = services.controller.delete_topics(list(wanted), counting(context, STRICT_SINCE))
    timed_out = BrokerError(ErrorCode.REQUEST_TIMED_OUT)

    def respond(outcomes: dict[str, BrokerError | None]) -> DeleteTopicsResponse:
        if request.timeout_ms <= 0:
            outcomes = {name: error or timed_out for name, error in outcomes.items()}
        return DeleteTopicsResponse(responses=refused + [_result(wanted[name], outcomes[name]) for name in wanted])

    wait_ms = request.timeout_ms if request.timeout_ms > 0 else LEAST_WAIT_MS
    return services.purgatory.within(wait_ms, deletion, lambda: dict.fromkeys(wanted, timed_out)).then(respond)


def _sort_out(
    request: DeleteTopicsRequest, context: Context, snapshot: MetadataSnapshot
) -> tuple[dict[str, DeleteTopicState], list[DeletableTopicResult]]:
    """The topics for the controller by name, and the results of those that never get there."""
    if context.api_version < 6:
        asked = [DeleteTopicState(name=name, topic_id=ZERO_TOPIC_ID) for name in dict.fromkeys(request.topic_names)]
    else:
        asked = request.topics
    if any(each.name is not None and each.topic_id != ZERO_TOPIC_ID for each in asked):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified.")
    named = [(each, _name_of(each, context, snapshot)) for each in asked]
    # Of topics whose names it may be told: what stands twice would tell which id is whose.
    times = Counter(name for _, name in named if isinstance(name, str))
    wanted: dict[str, DeleteTopicState] = {}
    refused = []
    for each, name in named:
        if isinstance(name, BrokerError):
            refused.append(_result(each, name))
            continue
        shown = DeleteTopicState(name=name, topic_id=each.topic_id)
        try:
            if times[name] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            context.require(Operation.DELETE, topic(name))
            if snapshot.topic(name) is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            wanted[name] = DeleteTopicState(name=name, topic_id=snapshot.topic_id(name))
        except BrokerError as error:
            refused.append(_result(shown, error))
    return wanted, refused


def _name_of(each: DeleteTopicState, context: Context, snapshot: MetadataSnapshot) -> str | BrokerError:
    """The topic's name, if the client may be told it; else why not."""
    if each.name is not None:
        return each.name
    if each.topic_id == ZERO_TOPIC_ID:
        return BrokerError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    known = snapshot.names_by_id.get(each.topic_id)
    if known is None:
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not context.allows(Operation.DESCRIBE, topic(known)):
        return BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return known


def _result(each: DeleteTopicState, error: BrokerError | None) -> DeletableTopicResult:
    if error is None:
        return DeletableTopicResult(name=each.name, topic_id=each.topic_id, error_code=ErrorCode.NONE)
    return DeletableTopicResult(
        name=each.name,
        topic_id=each.topic_id,
        error_code=error.code,
        error_message=error.message or error.code.message,
    )
