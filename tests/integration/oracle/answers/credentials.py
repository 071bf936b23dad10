"""SCRAM credentials, and delegation tokens where nobody may have one: over plaintext."""

import hashlib
from collections.abc import Sequence

from kavka.protocol.api import ApiKey
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
from tests.integration.oracle.answers.stage import KAFKA_39, Stage, scenario

SHA_256, SHA_512 = 1, 2


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096, salt: bytes = b"salt") -> object:
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", salt or b"none", 4096)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def deletion(user: str, mechanism: int = SHA_256) -> object:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def alter(stage: Stage, label: str, *asked: object) -> None:
    deletions = [each for each in asked if isinstance(each, ScramCredentialDeletion)]
    upsertions = [each for each in asked if isinstance(each, ScramCredentialUpsertion)]
    stage.ask(label, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions), 0)


def describe(stage: Stage, label: str, users: Sequence[str] | None) -> None:
    names = None if users is None else [UserName(name=user) for user in users]
    stage.ask(label, DescribeUserScramCredentialsRequest(users=names), 0)


@scenario(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, oracles=[KAFKA_39])
def scram_credentials_are_altered_and_described(stage: Stage) -> None:
    alice, bob = f"{stage.name}/alice", f"{stage.name} bob*"
    alter(stage, "two users", upsertion(alice), upsertion(alice, SHA_512, 8192), upsertion(bob, SHA_512, 16384))
    describe(stage, "both", [alice, bob])
    describe(stage, "one and nobody", [bob, f"{alice}.no"])
    describe(stage, "all", None)
    describe(stage, "none is all", [])
    describe(stage, "twice", [alice, bob, alice])
    describe(stage, "no name", ["", bob, ""])
    alter(stage, "one goes, one changes", deletion(alice), upsertion(alice, SHA_512, 4097))
    describe(stage, "changed", [alice])
    alter(stage, "gone already, and another", deletion(alice), deletion(bob, SHA_512))
    describe(stage, "the other is gone", [alice, bob])
    alter(stage, "gone and set at once", deletion(alice, SHA_512), upsertion(alice))
    alter(stage, "an empty salt", upsertion(bob, salt=b""))
    alter(stage, "undone", deletion(alice), deletion(bob))
    describe(stage, "nobody", None)


@scenario(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, oracles=[KAFKA_39])
def wrong_scram_credentials_are_refused(stage: Stage) -> None:
    user = f"{stage.name}/user"
    alter(stage, "nothing")
    alter(stage, "too few iterations", upsertion(user, iterations=4095))
    alter(stage, "too many iterations", upsertion(user, iterations=16385))
    alter(stage, "negative iterations", upsertion(user, iterations=-1))
    alter(stage, "mechanism 0", upsertion(user, mechanism=0))
    alter(stage, "mechanism 77", upsertion(user, mechanism=77))
    alter(stage, "mechanism -1", deletion(user, mechanism=-1))
    alter(stage, "no name", upsertion(""), deletion("", SHA_512))
    alter(stage, "no name and no mechanism", upsertion("", mechanism=5))
    alter(stage, "set twice", upsertion(user), upsertion(user))
    alter(stage, "set and gone", upsertion(user), deletion(user))
    alter(stage, "gone twice", deletion(user), deletion(user))
    alter(stage, "wrong in two ways", upsertion(user, iterations=1), deletion(user, 9), upsertion(user, 7))
    alter(stage, "wrong, twice", upsertion(user, iterations=1), upsertion(user), upsertion(user))
    alter(stage, "one is wrong", upsertion(user, iterations=1), upsertion(f"{user}2", SHA_512))
    alter(stage, "undone", deletion(f"{user}2", SHA_512))
    describe(stage, "nothing was done", [user])


@scenario(ApiKey.CREATE_DELEGATION_TOKEN)
def no_tokens_are_given_over_plaintext(stage: Stage) -> None:
    renewers = [CreatableRenewers(principal_type="Group", principal_name="g")]
    stage.ask("one", CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1))
    stage.ask("with renewers", CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=5))
    if stage.version >= 3:
        request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=5)
        request.owner_principal_type, request.owner_principal_name = "User", "alice"
        stage.ask("another's", request)
        request.owner_principal_name = ""
        stage.ask("nobody's", request)


@scenario(ApiKey.RENEW_DELEGATION_TOKEN)
def no_tokens_are_renewed_over_plaintext(stage: Stage) -> None:
    stage.ask("one", RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=-1))


@scenario(ApiKey.EXPIRE_DELEGATION_TOKEN)
def no_tokens_are_expired_over_plaintext(stage: Stage) -> None:
    stage.ask("one", ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=-1))


@scenario(ApiKey.DESCRIBE_DELEGATION_TOKEN)
def no_tokens_are_described_over_plaintext(stage: Stage) -> None:
    stage.ask("all", DescribeDelegationTokenRequest(owners=None))
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")]
    stage.ask("alice's", DescribeDelegationTokenRequest(owners=owners))
    stage.ask("nobody's", DescribeDelegationTokenRequest(owners=[]))
