"""AlterClientQuotas v0-1 (KIP-546).

Behaviour
- Sets and takes away quotas of users, client ids, both together, and addresses; each entity goes its own way, all its
  changes together. Needs ALTER_CONFIGS on the cluster. What else is stored for an entity stays (SCRAM's secrets).
- Answers when this broker goes by the change, but for a host's name, which is looked up once more for that; the others
  hear of it by the registry.
- Who names a host waits for the resolver; no thread that serves others does.
- Refused (INVALID_REQUEST): unknown types and quotas, empty names, an address beside others, or a host without one,
  what is no whole number where that is wanted. Unlike Kafka: numbers that are not finite.
- Not done: nothing.

Versions
- v1 is the first flexible one; otherwise both are alike.
"""

import logging
from typing import TYPE_CHECKING

from kavka.broker.requests.acl_requests import asker
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.cluster.controller.requests import ConfigEntity

log = logging.getLogger(__name__)


def _refused(request: AlterClientQuotasRequest, code: ErrorCode, message: str | None) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_outcome(each, BrokerError(code, message)) for each in request.entries])


@handles(AlterClientQuotasRequest, versions="0-1", error_answer=_refused)
def alter_client_quotas(
    request: AlterClientQuotasRequest, context: Context, services: "Services"
) -> Promise[AlterClientQuotasResponse]:
    context.require(Operation.ALTER_CONFIGS, CLUSTER)
    return gather(
        [_altered(each, context, services, validate_only=request.validate_only) for each in request.entries],
        lambda entries: AlterClientQuotasResponse(entries=entries),
    )


def _altered(
    each: AlterClientQuotasRequestEntryData, context: Context, services: "Services", *, validate_only: bool
) -> Promise[AlterClientQuotasResponseEntryData]:
    # Not needed before somebody asks.
    from kavka.broker.quotas.altering import QuotaChange, entity_of, needs_lookup, update_of

    names = [(part.entity_type, part.entity_name) for part in each.entity]
    changes = [QuotaChange(change.key, None if change.remove else change.value) for change in each.ops]

    def altering(entity: "ConfigEntity") -> Promise[None]:
        return services.controller.alter_configs(entity, update_of(entity, changes), validate_only)

    altered: Promise[None] = Promise()
    if needs_lookup(names):
        altered = services.resolver_worker().run(lambda: entity_of(names)).then(altering)
    else:
        try:
            altered = altering(entity_of(names))
        except BrokerError as error:
            altered.fail(error)

    def failed(error: BaseException) -> AlterClientQuotasResponseEntryData:
        return _outcome(each, error if isinstance(error, BrokerError) else BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def done(_: None) -> AlterClientQuotasResponseEntryData:
        if not validate_only:
            quotas = {change.key: change.value for change in changes}
            log.info("quotas altered entity=%r quotas=%r by=%r", names, quotas, asker(context))
        return _outcome(each, None)

    return altered.then(done, failed)


def _outcome(each: AlterClientQuotasRequestEntryData, error: BrokerError | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message or error.code.message,
        entity=each.entity,
    )
