"""JoinGroup v0-9.

Behaviour
- A member joins a group, or joins again; the answer comes when the rebalance's join phase is over, and takes no room in
  the connection's queue meanwhile. The leader is told of all members.
- From v4 on a dynamic member is given its id first: MEMBER_ID_REQUIRED (KIP-394).
- INVALID_GROUP_ID, and INVALID_SESSION_TIMEOUT outside group.min/max.session.timeout.ms, before anything else.
- Not done: nothing.

Versions
- v0 has no rebalance timeout: it's the session's. v5: static members (KIP-345). v7: the protocol type in the answer,
  whose protocol name is null in errors. v8: the reason (KIP-800). v9: skip_assignment (KIP-814).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.coordination.clients import client_of
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.prepared_member import prepare_wait
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.coordinator.group.group import Client

NULL_PROTOCOL_SINCE: Final = 7
NO_GENERATION: Final = -1


def _refused(request: JoinGroupRequest, code: ErrorCode, _message: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        generation_id=NO_GENERATION,
        protocol_name="",
        leader="",
        # Who must not know of the group is not told of the member either, as by Kafka.
        member_id="" if code is ErrorCode.GROUP_AUTHORIZATION_FAILED else request.member_id,
        members=[],
    )


@handles(JoinGroupRequest, versions="0-9", error_answer=_refused)
def join_group(request: JoinGroupRequest, context: Context, services: "Services") -> Promise[JoinGroupResponse]:
    promise: Promise[JoinGroupResponse] = Promise(effects_complete=True)
    client = client_of(context)
    try:
        context.require(Operation.READ, group(request.group_id))
        if not request.group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    except BrokerError as error:
        promise.complete(_as_of(client.api_version, _refused(request, error.code, None)))
    else:
        prepare_wait(request, context, services, _ask, JoinGroupResponse)
        _ask(request, client, services, promise.complete)
    return promise


def _ask(
    request: JoinGroupRequest, client: "Client", services: "Services", answer: Callable[[JoinGroupResponse], object]
) -> None:
    def reply(response: JoinGroupResponse) -> None:
        answer(_as_of(client.api_version, response))

    def refused(error: BrokerError) -> None:
        reply(_refused(request, error.code, None))

    config = services.config.current
    if not (config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms):
        refused(BrokerError(ErrorCode.INVALID_SESSION_TIMEOUT))
    else:
        services.groups.run(request.group_id, lambda shard: shard.join(request, client, reply), refused)


def _as_of(version: int, response: JoinGroupResponse) -> JoinGroupResponse:
    """Where there is no protocol, its name is null or empty, by the version."""
    if not response.protocol_name:
        response.protocol_name = None if version >= NULL_PROTOCOL_SINCE else ""
    return response
