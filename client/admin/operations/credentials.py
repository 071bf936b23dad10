"""SCRAM credentials, and delegation tokens."""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.targets import Anywhere
from kavka.client.admin.types.credentials import (
    DelegationToken,
    KafkaPrincipal,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kavka.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kavka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kavka.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kavka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kavka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kavka.protocol.schema import Request

_HASHES: Final[Mapping[ScramMechanism, str]] = {
    ScramMechanism.SCRAM_SHA_256: "sha256",
    ScramMechanism.SCRAM_SHA_512: "sha512",
}
SALT_BYTES: Final = 24
OWNER_SINCE: Final = 3
GONE_ALREADY: Final = -1


def describe_scram(
    users: Sequence[str] | None,
) -> Operation[None, dict[str, Outcome[tuple[ScramCredentialInfo, ...]]]]:
    def request(_items: Sequence[None], _timeout_ms: int) -> Request:
        names = None if users is None else [UserName(name=user) for user in users]
        return DescribeUserScramCredentialsRequest(users=names)

    def read(answered: Answered[None]) -> Iterator[tuple[None, dict[str, Outcome[tuple[ScramCredentialInfo, ...]]]]]:
        check(answered.body.error_code, answered.body.error_message)
        yield None, {row.user: error_or(row, _infos(row)) for row in answered.body.results}

    return Operation("describing SCRAM credentials", [None], request=request, read=read)


def _infos(row: Any) -> tuple[ScramCredentialInfo, ...]:
    return tuple(ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations) for info in row.credential_infos)


def alter_scram(
    upsertions: Mapping[str, Sequence[UserScramCredentialUpsertion]],
    deletions: Mapping[str, Sequence[UserScramCredentialDeletion]],
) -> Operation[str, None]:
    """Raises ValueError for a mechanism that is not known."""
    hashed = {user: [_upsertion(each) for each in rows] for user, rows in upsertions.items()}

    def request(users: Sequence[str], _timeout_ms: int) -> Request:
        return AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name=user, mechanism=each.mechanism)
                for user in users
                for each in deletions.get(user, ())
            ],
            upsertions=[row for user in users for row in hashed.get(user, ())],
        )

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[None]]]:
        for row in answered.body.results:
            yield row.user, error_or(row, None)

    return Operation(
        "changing SCRAM credentials",
        [*upsertions, *deletions],
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        settled=frozenset({ErrorCode.RESOURCE_NOT_FOUND}) if not upsertions else frozenset(),
    )


def _upsertion(wanted: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    if wanted.mechanism not in _HASHES:
        raise ValueError(f"no SCRAM mechanism to set a password for: {wanted.mechanism.name}")
    salt = secrets.token_bytes(SALT_BYTES) if wanted.salt is None else wanted.salt
    password = wanted.password.encode()
    return ScramCredentialUpsertion(
        name=wanted.user,
        mechanism=wanted.mechanism,
        iterations=wanted.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(_HASHES[wanted.mechanism], password, salt, wanted.iterations),
    )


def create_token(
    renewers: Sequence[KafkaPrincipal], owner: KafkaPrincipal | None, max_lifetime_ms: int
) -> Operation[None, DelegationToken]:
    def request(_items: Sequence[None], _timeout_ms: int) -> Request:
        return CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else owner.type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=[CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in renewers],
            max_lifetime_ms=max_lifetime_ms,
        )

    def read(answered: Answered[None]) -> Iterator[tuple[None, DelegationToken]]:
        row = answered.body
        check(row.error_code)
        yield (
            None,
            DelegationToken(
                row.token_id,
                row.hmac,
                KafkaPrincipal(row.principal_type, row.principal_name),
                _requester(row),
                row.issue_timestamp_ms,
                row.expiry_timestamp_ms,
                row.max_timestamp_ms,
                tuple(renewers),
            ),
        )

    return Operation(
        "creating a delegation token",
        [None],
        request=request,
        read=read,
        versions=(0 if owner is None else OWNER_SINCE, 3),
        repeatable=False,
    )


def _requester(row: Any) -> KafkaPrincipal | None:
    kind = row.token_requester_principal_type
    return KafkaPrincipal(kind, row.token_requester_principal_name) if kind else None


def renew_token(hmac: bytes, period_ms: int) -> Operation[None, int]:
    return Operation(
        "renewing a delegation token",
        [None],
        request=lambda *_: RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms),
        read=_expiry,
        # The period begins anew with the second request, and the answer says when it ends: that is what was asked for.
    )


def expire_token(hmac: bytes, period_ms: int) -> Operation[None, int]:
    return Operation(
        "expiring a delegation token",
        [None],
        request=lambda *_: ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
        read=_expiry,
        # A token that is gone cannot be expired more than it is.
        settled=frozenset({ErrorCode.DELEGATION_TOKEN_NOT_FOUND, ErrorCode.DELEGATION_TOKEN_EXPIRED}),
        settled_as=GONE_ALREADY,
    )


def _expiry(answered: Answered[None]) -> Iterator[tuple[None, int]]:
    check(answered.body.error_code)
    yield None, answered.body.expiry_timestamp_ms


def describe_tokens(owners: Sequence[KafkaPrincipal] | None) -> Operation[None, list[DelegationToken]]:
    def request(_items: Sequence[None], _timeout_ms: int) -> Request:
        rows = None
        if owners is not None:
            rows = [DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name) for each in owners]
        return DescribeDelegationTokenRequest(owners=rows)

    def read(answered: Answered[None]) -> Iterator[tuple[None, list[DelegationToken]]]:
        check(answered.body.error_code)
        yield None, [_token(row) for row in answered.body.tokens]

    return Operation("describing delegation tokens", [None], request=request, read=read)


def _token(row: Any) -> DelegationToken:
    return DelegationToken(
        row.token_id,
        row.hmac,
        KafkaPrincipal(row.principal_type, row.principal_name),
        _requester(row),
        row.issue_timestamp,
        row.expiry_timestamp,
        row.max_timestamp,
        tuple(KafkaPrincipal(each.principal_type, each.principal_name) for each in row.renewers),
    )
