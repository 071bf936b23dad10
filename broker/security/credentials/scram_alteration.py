"""AlterUserScramCredentials' rules (KIP-554): what is refused at once, and what becomes of a user's settings.

The refusals, their order and their words are those of Kafka's brokers on ZooKeeper (ZkAdminManager).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kavka.cluster.znodes.scram_credential import MECHANISMS, credential_text
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, credential_of_salted

if TYPE_CHECKING:
    from kavka.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )

MOST_SALT_BYTES: Final = 2048
EMPTY_USER: Final = "Username must not be empty"
_UNKNOWN_MECHANISM: Final = "Unknown SCRAM mechanism"
_TWICE: Final = "A user credential cannot be altered twice in the same request"
_NOT_THERE: Final = "Attempt to delete a user credential that does not exist"


class Alteration:
    """What a request wants of one user."""

    __slots__ = ("deletions", "upsertions")

    def __init__(self) -> None:
        self.deletions: list[ScramCredentialDeletion] = []
        self.upsertions: list[ScramCredentialUpsertion] = []

    def __str__(self) -> str:
        """Which mechanisms, for the log."""
        given = ",".join(MECHANISMS[each.mechanism] for each in self.upsertions)
        removed = ",".join(MECHANISMS[each.mechanism] for each in self.deletions)
        return f"set={given or '-'} removed={removed or '-'}"

    def apply(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The user's settings afterwards; what is no credential stays. Raises BrokerError(RESOURCE_NOT_FOUND)."""
        config = dict(stored)
        if any(MECHANISMS[each.mechanism] not in config for each in self.deletions):
            raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, _NOT_THERE)
        for deletion in self.deletions:
            del config[MECHANISMS[deletion.mechanism]]
        for upsertion in self.upsertions:
            name = MECHANISMS[upsertion.mechanism]
            salted, salt = bytes(upsertion.salted_password), bytes(upsertion.salt)
            credential = credential_of_salted(ScramMechanism(name), salted, salt, upsertion.iterations)
            config[name] = credential_text(credential)
        return config


def alterations(
    request: "AlterUserScramCredentialsRequest",
) -> tuple[dict[str, BrokerError], dict[str, Alteration]]:
    """(by user: why nothing is done for it, what is to be done); in the order in which Kafka answers."""
    refused = _illegal(request)
    wanted: dict[str, Alteration] = {}
    for upsertion in request.upsertions:
        if upsertion.name not in refused:
            wanted.setdefault(upsertion.name, Alteration()).upsertions.append(upsertion)
    for deletion in request.deletions:
        if deletion.name not in refused:
            wanted.setdefault(deletion.name, Alteration()).deletions.append(deletion)
    for user, alteration in list(wanted.items()):
        mechanisms = [each.mechanism for each in alteration.upsertions]
        mechanisms += [each.mechanism for each in alteration.deletions]
        if len(set(mechanisms)) < len(mechanisms):
            refused[user] = BrokerError(ErrorCode.DUPLICATE_RESOURCE, _TWICE)
            del wanted[user]
    return refused, wanted


def _illegal(request: "AlterUserScramCredentialsRequest") -> dict[str, BrokerError]:
    refused: dict[str, BrokerError] = {}
    # Of a user that is wrong in several ways the last upsertion's way is told.
    for deletion in request.deletions:
        if (fault := _fault(deletion.name, deletion.mechanism)) is not None:
            refused[deletion.name] = fault
    for upsertion in request.upsertions:
        if (fault := _fault(upsertion.name, upsertion.mechanism) or _weakness(upsertion)) is not None:
            refused[upsertion.name] = fault
    return refused


def _fault(user: str, mechanism: int) -> BrokerError | None:
    if not user:
        return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, EMPTY_USER)
    if mechanism not in MECHANISMS:
        return BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, _UNKNOWN_MECHANISM)
    return None


def _weakness(upsertion: "ScramCredentialUpsertion") -> BrokerError | None:
    reason = None
    if upsertion.iterations > MAX_ITERATIONS:
        reason = "Too many iterations"
    elif upsertion.iterations < MIN_ITERATIONS:
        reason = "Too few iterations"
    elif not upsertion.salted_password:
        # Whose proof everybody can make.
        reason = "Salted password must not be empty"
    elif len(upsertion.salt) > MOST_SALT_BYTES:
        reason = "Salt is too long"
    return None if reason is None else BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)
