"""ACLs, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of, split
from kavka.client.admin.areas.later import Later
from kavka.client.admin.types.acls import AclBindingFilter

if TYPE_CHECKING:
    from kavka.client.admin.operations import acls, credentials
    from kavka.client.admin.types.acls import AclBinding, DeletedAcl
    from kavka.client.admin.types.credentials import (
        DelegationToken,
        KafkaPrincipal,
        ScramCredentialInfo,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
else:
    acls = Later("kavka.client.admin.operations.acls")
    credentials = Later("kavka.client.admin.operations.credentials")

_EVERYTHING = AclBindingFilter()


class SecurityArea(Area):
    """Threads: any."""

    def describe_acls(
        self, wanted: AclBindingFilter = _EVERYTHING, *, timeout_ms: float | None = None
    ) -> list[AclBinding]:
        """The entries that a filter matches, all by default. Raises SecurityDisabledError without an authorizer."""
        return self._one(acls.describe_acls(wanted), self._deadline(timeout_ms))

    def create_acls(self, bindings: Iterable[AclBinding], *, timeout_ms: float | None = None) -> dict[AclBinding, None]:
        """Add entries; those that are there already stay.

        admin.create_acls([AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)])
        """
        return self._run(acls.create_acls(each_of(bindings)), self._deadline(timeout_ms))

    def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: float | None = None
    ) -> dict[AclBindingFilter, list[DeletedAcl]]:
        """Remove the entries that filters match; which these were. One that could not be has its `error`."""
        return self._run(acls.delete_acls(each_of(filters)), self._deadline(timeout_ms))

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        """Which users have passwords, for which mechanisms (KIP-554); all by default.

        Raises ResourceNotFoundError for a user that was asked for and has none.
        """
        operation = credentials.describe_scram(None if users is None else each_of(users))
        described = self._one(operation, self._deadline(timeout_ms))
        return split(operation.name, described)

    def alter_user_scram_credentials(
        self,
        upsertions: Iterable[UserScramCredentialUpsertion] = (),
        deletions: Iterable[UserScramCredentialDeletion] = (),
        *,
        timeout_ms: float | None = None,
    ) -> dict[str, None]:
        """Set and remove passwords, by user. They are salted and hashed here, so that brokers never see them.

            secret = UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "secret")
            admin.alter_user_scram_credentials([secret])

        Raises UnacceptableCredentialError, ResourceNotFoundError, ... Asked of the controller.
        """
        to_set: dict[str, list[UserScramCredentialUpsertion]] = {}
        to_remove: dict[str, list[UserScramCredentialDeletion]] = {}
        for upsertion in each_of(upsertions):
            to_set.setdefault(upsertion.user, []).append(upsertion)
        for deletion in each_of(deletions):
            to_remove.setdefault(deletion.user, []).append(deletion)
        return self._run(credentials.alter_scram(to_set, to_remove), self._deadline(timeout_ms))

    def create_delegation_token(
        self,
        *,
        renewers: Iterable[KafkaPrincipal] = (),
        owner: KafkaPrincipal | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: float | None = None,
    ) -> DelegationToken:
        """A token for the caller, or for `owner` (KIP-48, KIP-373); -1: for as long as the broker allows.

        Raises DelegationTokenDisabledError, DelegationTokenRequestNotAllowedError, ...; DisconnectedError when
        it is not known whether there is one more now.
        """
        operation = credentials.create_token(each_of(renewers), owner, max_lifetime_ms)
        return self._one(operation, self._deadline(timeout_ms))

    def renew_delegation_token(
        self, hmac: bytes, *, renew_time_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Have a token expire later, -1: by the broker's period; when it will, in the epoch's milliseconds.

        Raises DelegationTokenNotFoundError, DelegationTokenExpiredError, DelegationTokenOwnerMismatchError, ...
        """
        return self._one(credentials.renew_token(hmac, renew_time_period_ms), self._deadline(timeout_ms))

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_time_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Have a token expire after a period, -1: now; when it will, in the epoch's milliseconds.

        When the connection ends it is asked again, and if the token is gone or over then, that is -1.
        Raises DelegationTokenNotFoundError, DelegationTokenOwnerMismatchError, ...
        """
        return self._one(credentials.expire_token(hmac, expiry_time_period_ms), self._deadline(timeout_ms))

    def describe_delegation_tokens(
        self, owners: Iterable[KafkaPrincipal] | None = None, *, timeout_ms: float | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners, or of all, that the caller may see."""
        wanted = None if owners is None else each_of(owners)
        return self._one(credentials.describe_tokens(wanted), self._deadline(timeout_ms))
