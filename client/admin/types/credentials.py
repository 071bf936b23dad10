"""SCRAM credentials (KIP-554) and delegation tokens (KIP-48)."""

import enum
from typing import NamedTuple


class ScramMechanism(enum.IntEnum):
    """The mechanisms that brokers store credentials for.

    UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    """

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @classmethod
    def _missing_(cls, value: object) -> "ScramMechanism | None":
        return cls.UNKNOWN if isinstance(value, int) else None


class ScramCredentialInfo(NamedTuple):
    """That a user has a password for a mechanism.

    for user, infos in admin.describe_user_scram_credentials().items():
        print(user, [info.mechanism.name for info in infos])
    """

    mechanism: ScramMechanism
    iterations: int


class UserScramCredentialUpsertion(NamedTuple):
    """A password to be set. It is salted and hashed here: brokers never see it. Without a salt, one is made up.

    UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_512, "secret")
    """

    user: str
    mechanism: ScramMechanism
    password: str
    iterations: int = 4096
    salt: bytes | None = None

    def __repr__(self) -> str:
        return f"UserScramCredentialUpsertion(user={self.user!r}, mechanism={self.mechanism.name}, password=[hidden])"


class UserScramCredentialDeletion(NamedTuple):
    """A password to be removed.

    UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)
    """

    user: str
    mechanism: ScramMechanism


class KafkaPrincipal(NamedTuple):
    """Somebody, as brokers name them.

    print(KafkaPrincipal.parse("User:alice").name)
    """

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "KafkaPrincipal":
        """Raises ValueError for what is not `Type:name`."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"a principal is written Type:name, not {text!r}")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class DelegationToken(NamedTuple):
    """A token: who has its `hmac` is its owner to brokers until it expires. Times are of the epoch's milliseconds.

    token = admin.create_delegation_token(renewers=[KafkaPrincipal("User", "carol")])
    admin.expire_delegation_token(token.hmac)
    """

    token_id: str
    hmac: bytes
    owner: KafkaPrincipal
    requester: KafkaPrincipal | None
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    renewers: tuple[KafkaPrincipal, ...] = ()

    def __repr__(self) -> str:
        return f"DelegationToken(token_id={self.token_id!r}, owner={self.owner}, hmac=[hidden])"
