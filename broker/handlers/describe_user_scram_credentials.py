"""DescribeUserScramCredentials v0.

Behaviour
- Which SCRAM mechanisms users have a credential for, and its iterations (KIP-554): of all users, by name, or of those
  asked for. Read from the registry, so that any broker answers what was written before.
- Who has none is RESOURCE_NOT_FOUND, who is asked for twice DUPLICATE_RESOURCE, a credential that cannot be read
  UNKNOWN_SERVER_ERROR.
- Not done: nothing.

Versions
- There is one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.entity_configs import read_config, read_configs
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import RegistryError
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.scram_credential import MECHANISMS, USERS, entity_of_user, parse_credential, user_of_node
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.cluster.registry.base import Registry

_EMPTY_USER: Final = "Username must not be empty"


def _refused(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> DescribeUserScramCredentialsResponse:
    """With a nameless user beside, as by Kafka."""
    nobody = DescribeUserScramCredentialsResult(user="", error_code=code, error_message=message, credential_infos=[])
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=message, results=[nobody])


@handles(DescribeUserScramCredentialsRequest, versions="0", error_answer=_refused)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context, services: "Services"
) -> Promise[DescribeUserScramCredentialsResponse]:
    context.require(Operation.DESCRIBE, CLUSTER)
    users = [each.name for each in request.users or ()]
    return services.registry_worker().run(lambda: _described(users, services.registry))


def _described(users: list[str], registry: "Registry") -> DescribeUserScramCredentialsResponse:
    try:
        results = _asked_for(users, registry) if users else _all(registry)
    except RegistryError as error:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    return DescribeUserScramCredentialsResponse(error_code=ErrorCode.NONE, error_message="", results=results)


def _all(registry: "Registry") -> list[DescribeUserScramCredentialsResult]:
    configs = {user_of_node(name): config for name, config in read_configs(registry, USERS).items()}
    return [
        _result(user, config)
        for user, config in sorted((user, config) for user, config in configs.items() if user is not None)
        if _has_credentials(config)
    ]


def _asked_for(users: Sequence[str], registry: "Registry") -> list[DescribeUserScramCredentialsResult]:
    results = []
    for user, times in Counter(users).items():
        try:
            if not user:
                raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, _EMPTY_USER)
            if times > 1:
                message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
                raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, message)
            config = read_config(registry, entity_of_user(user))
            if not _has_credentials(config):
                message = f"Attempt to describe a user credential that does not exist: {user}"
                raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, message)
            results.append(_result(user, config))
        except BrokerError as error:
            results.append(_failed(user, error.code, error.message))
        except ZnodeError:
            results.append(_failed(user, ErrorCode.UNKNOWN_SERVER_ERROR))
    return results


def _has_credentials(config: Mapping[str, str]) -> bool:
    return any(name in config for name in MECHANISMS.values())


def _result(user: str, config: Mapping[str, str]) -> DescribeUserScramCredentialsResult:
    try:
        infos = [
            CredentialInfo(mechanism=number, iterations=parse_credential(config[name]).iterations)
            for number, name in MECHANISMS.items()
            if name in config
        ]
    except ValueError:
        return _failed(user, ErrorCode.UNKNOWN_SERVER_ERROR)
    return DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.NONE, error_message="", credential_infos=infos
    )


def _failed(user: str, code: ErrorCode, message: str | None = None) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=message or code.message, credential_infos=[]
    )
