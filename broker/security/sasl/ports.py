"""Where SASL asks for credentials. Made by `broker/security/credentials`, which keeps them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kavka.cluster.znodes.scram_credential import Look
from kavka.protocol.sasl.scram import ScramCredential, ScramMechanism


class ScramCredentials(Protocol):
    """What is stored of users' passwords. Threads: any; answers from memory, never waits."""

    def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """The user's credential for this mechanism; None if there is none, or no such user."""
        ...

    def looks(self, mechanism: ScramMechanism) -> Sequence[Look]:
        """Those of users' credentials for it, sorted, one for each user; of very many users those of some."""
        ...


class Token(NamedTuple):
    """A delegation token as its login needs it (KIP-48)."""

    owner: str
    """The principal that who logs in by it becomes, as `User:NAME`."""
    expiry_ms: int
    """When it expires (Unix time): the session ends then (KIP-368)."""
    hmac_text: str
    """The token's secret as base64: it is the password."""

    def __repr__(self) -> str:
        return f"Token(owner={self.owner!r}, expiry_ms={self.expiry_ms})"


class Tokens(Protocol):
    """Delegation tokens. Threads: any; answers from memory, never waits."""

    def find(self, token_id: str) -> Token | None:
        """The token of that id; None if there is none, or it has expired."""
        ...


class Stores(Protocol):
    """Where both are found; None: there are none. The broker's services are one."""

    @property
    def scram_credentials(self) -> ScramCredentials | None: ...

    @property
    def tokens(self) -> Tokens | None: ...
