"""SyncGroup v0-5.

Behaviour
- Members ask for their assignment; the leader brings everybody's. The answers come when the assignment stands in
  `__consumer_offsets`, so that it survives whatever happens to the broker.
- From v5 on the protocol's type and name have to be given and to be right: INCONSISTENT_GROUP_PROTOCOL (KIP-559).
- Not done: nothing.

Versions
- v3: static members (KIP-345). v5: protocol type and name, in the answer too.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.coordination.clients import client_of
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.prepared_member import prepare_wait
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.coordinator.group.group import Client

PROTOCOL_REQUIRED_SINCE: Final = 5


def _refused(_request: SyncGroupRequest, code: ErrorCode, _message: str | None) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")


@handles(SyncGroupRequest, versions="0-5", error_answer=_refused)
def sync_group(
    request: SyncGroupRequest, context: Context, services: "Services"
) -> SyncGroupResponse | Promise[SyncGroupResponse]:
    if context.api_version >= PROTOCOL_REQUIRED_SINCE and None in (request.protocol_type, request.protocol_name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.require(Operation.READ, group(request.group_id))
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    prepare_wait(request, context, services, _ask, SyncGroupResponse)
    promise: Promise[SyncGroupResponse] = Promise(effects_complete=True)
    _ask(request, client_of(context), services, promise.complete)
    return promise.or_response()


def _ask(
    request: SyncGroupRequest, client: "Client", services: "Services", answer: Callable[[SyncGroupResponse], object]
) -> None:
    services.groups.run(
        request.group_id,
        lambda shard: shard.sync(request, client, answer),
        lambda error: answer(_refused(request, error.code, None)),
    )
