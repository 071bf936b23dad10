"""AlterUserScramCredentials v0.

Behaviour
- Sets and removes users' SCRAM credentials (KIP-554). What comes is a salted password, of which the keys that are
  stored are made. All that is asked for one user is done together, beside what else is set for the user; each user
  goes by itself. Answered when this broker knows of it; who logs in elsewhere is checked by it moments later.
- Refused: an empty name, other than 4096 to 16384 iterations, an empty salted password (UNACCEPTABLE_CREDENTIAL), a
  mechanism that is not known (UNSUPPORTED_SASL_MECHANISM), a mechanism twice for a user (DUPLICATE_RESOURCE), a removal
  of what is not there (RESOURCE_NOT_FOUND). Brokers that are not the controller say NOT_CONTROLLER.
- Not done: nothing.

Versions
- There is one.
"""

import logging
from typing import TYPE_CHECKING

from kavka.broker.requests.acl_requests import asker
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.controller.requests import ConfigEntity
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from kavka.broker.security.credentials.scram_alteration import Alteration
    from kavka.broker.services import Services

log = logging.getLogger(__name__)

Outcome = tuple[str, BrokerError | None]


def _refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    users = {each.name for each in request.upsertions} | {each.name for each in request.deletions}
    error = BrokerError(code, message)
    return _response([(user, error) for user in sorted(users)])


@handles(AlterUserScramCredentialsRequest, versions="0", error_answer=_refused)
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context, services: "Services"
) -> Promise[AlterUserScramCredentialsResponse]:
    if not services.controller.is_active:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    context.require(Operation.ALTER, CLUSTER)
    # A broker without users never loads what makes keys.
    from kavka.broker.security.credentials.scram_alteration import alterations

    refused, wanted = alterations(request)
    done = [_alter(user, alteration, asker(context), services) for user, alteration in wanted.items()]

    def respond(outcomes: list[Outcome]) -> AlterUserScramCredentialsResponse:
        return _response([*refused.items(), *sorted(outcomes, key=lambda outcome: outcome[1] is None)])

    return gather(done, respond)


def _alter(user: str, alteration: "Alteration", who: str, services: "Services") -> Promise[Outcome]:
    def failed(error: BaseException) -> Outcome:
        return user, error if isinstance(error, BrokerError) else BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def update(stored: dict[str, str]) -> dict[str, str]:
        return alteration.apply(stored)

    def told(_: None) -> Outcome:
        log.info("SCRAM credentials changed user=%r %s by=%r", user, alteration, who)
        return user, None

    return services.controller.alter_configs(ConfigEntity.user(user), update).then(told, failed)


def _words(error: BrokerError | None) -> str | None:
    """Kafka has none for who lacks the right."""
    if error is None:
        return ""
    return error.message or (None if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else error.code.message)


def _response(outcomes: "list[Outcome] | list[tuple[str, BrokerError]]") -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=_words(error),
            )
            for user, error in outcomes
        ]
    )
