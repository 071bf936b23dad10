"""Requests about ACLs, quotas, credentials and delegation tokens."""

from typing import Final

from kavka.broker.security.acl import Operation, ResourceType
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from kavka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kavka.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from kavka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kavka.protocol.messages.describe_acls import DescribeAclsRequest
from kavka.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kavka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kavka.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kavka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kavka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.integration.oracle.rights.table import ALLOW, ANY_HOST, GONE, LITERAL, Names, Need, cluster, row

OWNER: Final = "somebody"
"""A user that nobody is."""
MATCHES_EXACTLY: Final = 0
SHA_256: Final = 1
TOPIC: Final = int(ResourceType.TOPIC)
READ: Final = int(Operation.READ)


def owner(operation: Operation) -> tuple[Need, ...]:
    return (Need(operation, ResourceType.USER, f"User:{OWNER}"),)


@row(ApiKey.DESCRIBE_ACLS, cluster(Operation.DESCRIBE), versions="1-99")
def describe_acls(version: int, names: Names) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=GONE + "-too",
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=READ,
        permission_type=ALLOW,
    )


@row(ApiKey.CREATE_ACLS, cluster(Operation.ALTER), versions="1-99")
def create_acls(version: int, names: Names) -> CreateAclsRequest:
    return CreateAclsRequest(creations=[_creation(f"User:{OWNER}"), _creation(f"User:{OWNER}-too")])


@row(ApiKey.DELETE_ACLS, cluster(Operation.ALTER), versions="1-99")
def delete_acls(version: int, names: Names) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=TOPIC,
                resource_name_filter=name,
                pattern_type_filter=LITERAL,
                principal_filter=f"User:{OWNER}",
                host_filter=ANY_HOST,
                operation=READ,
                permission_type=ALLOW,
            )
            for name in (GONE, GONE + "-too")
        ]
    )


@row(ApiKey.DESCRIBE_CLIENT_QUOTAS, cluster(Operation.DESCRIBE_CONFIGS))
def describe_client_quotas(version: int, names: Names) -> DescribeClientQuotasRequest:
    components = [ComponentData(entity_type="user", match_type=MATCHES_EXACTLY, match=OWNER)]
    return DescribeClientQuotasRequest(components=components, strict=True)


@row(ApiKey.ALTER_CLIENT_QUOTAS, cluster(Operation.ALTER_CONFIGS))
def alter_client_quotas(version: int, names: Names) -> AlterClientQuotasRequest:
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="user", entity_name=OWNER)],
        ops=[OpData(key="producer_byte_rate", value=1024.0, remove=False)],
    )
    return AlterClientQuotasRequest(entries=[entry], validate_only=True)


@row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, cluster(Operation.DESCRIBE))
def describe_user_scram_credentials(version: int, names: Names) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=OWNER)])


@row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, cluster(Operation.ALTER))
def alter_user_scram_credentials(version: int, names: Names) -> AlterUserScramCredentialsRequest:
    deletions = [ScramCredentialDeletion(name=OWNER, mechanism=SHA_256)]
    return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[])


@row(ApiKey.CREATE_DELEGATION_TOKEN, owner(Operation.CREATE_TOKENS), versions="3-99")
def create_delegation_token(version: int, names: Names) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name=OWNER, renewers=[], max_lifetime_ms=-1
    )


@row(ApiKey.DESCRIBE_DELEGATION_TOKEN, owner(Operation.DESCRIBE_TOKENS), versions="1-99")
def describe_delegation_token(version: int, names: Names) -> DescribeDelegationTokenRequest:
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name=OWNER)]
    return DescribeDelegationTokenRequest(owners=owners)


@row(ApiKey.RENEW_DELEGATION_TOKEN, cluster(Operation.ALTER))
def renew_delegation_token(version: int, names: Names) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=b"of no token", renew_period_ms=-1)


@row(ApiKey.EXPIRE_DELEGATION_TOKEN, cluster(Operation.ALTER))
def expire_delegation_token(version: int, names: Names) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=b"of no token", expiry_time_period_ms=-1)


@row(ApiKey.SASL_AUTHENTICATE, cluster(Operation.ALTER))
def sasl_authenticate_once_more(version: int, names: Names) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=b"\0somebody\0else")


@row(ApiKey.SASL_HANDSHAKE, cluster(Operation.ALTER))
def sasl_handshake_once_more(version: int, names: Names) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism="PLAIN")


def _creation(principal: str) -> AclCreation:
    return AclCreation(
        resource_type=TOPIC,
        resource_name=GONE,
        resource_pattern_type=LITERAL,
        principal=principal,
        host=ANY_HOST,
        operation=READ,
        permission_type=ALLOW,
    )
