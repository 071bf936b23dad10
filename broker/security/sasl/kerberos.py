"""GSSAPI (RFC 4752): clients log in by Kerberos. Authentication alone, no integrity or encryption, as in Kafka.

The broker's own key comes from the keytab that the listener's JAAS text names:

    com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true
        keyTab="/etc/security/kafka.keytab" principal="kafka/broker1.example.com@EXAMPLE.COM";

Only imported where a listener has it: python-gssapi is the extra `kerberos`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import gssapi
from gssapi.raw.misc import GSSError

from kavka.broker.security.sasl.kerberos_names import LocalNames, NoNameError
from kavka.broker.security.sasl.mechanisms import AuthenticationError, Identity

NO_LAYER: Final = 1
"""Of the security layers (RFC 4752) the one that is none."""
_OFFER: Final = bytes([NO_LAYER, 0, 0, 0])
_SHORTEST_CHOICE: Final = 4


class KerberosError(Exception):
    """The broker has no key by these options. The text is for its operator."""


class Kerberos:
    """One listener's. Threads: any."""

    def __init__(self, options: Mapping[str, str], rules: tuple[str, ...]) -> None:
        """`options`: those of the login module. Raises KerberosError; ValueError for a rule that cannot be read."""
        if options.get("useKeyTab", "").lower() != "true" or not options.get("keyTab") or not options.get("principal"):
            raise KerberosError("must have useKeyTab=true, keyTab and principal: a broker has no other key")
        try:
            own = gssapi.Name(options["principal"], gssapi.NameType.kerberos_principal)
            store: dict[bytes | str, bytes | str] = {"keytab": options["keyTab"].removeprefix("file:")}
            self.credentials: Final[Any] = gssapi.Credentials(usage="accept", name=own, store=store)
            default_realm = str(gssapi.Name("x", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos))
        except GSSError as problem:
            raise KerberosError(f"has no key that can be used: {_told(problem)}") from problem
        self.names: Final = LocalNames(rules, default_realm.partition("@")[2])

    def login(self) -> "KerberosLogin":
        """Begin a client's login."""
        return KerberosLogin(gssapi.SecurityContext(creds=self.credentials, usage="accept"), self.names)


class _Stage(Enum):
    CONTEXT = "the context is negotiated"
    OFFER = "the client has the last token of the context, and answers nothing"
    CHOICE = "the client chooses among the layers that it was offered"
    DONE = "done"


class KerberosLogin:
    """One client's. Threads: one at a time."""

    def __init__(self, context: Any, names: LocalNames) -> None:
        """`context`: a new gssapi.SecurityContext of the accepting side."""
        self._context = context
        self._names = names
        self._stage = _Stage.CONTEXT
        self.identity: Identity | None = None

    def respond(self, token: bytes) -> bytes | None:
        """The server's next token; None once the client is known. Raises AuthenticationError."""
        try:
            match self._stage:
                case _Stage.CONTEXT:
                    return self._negotiate(token)
                case _Stage.OFFER:
                    if token:
                        raise AuthenticationError("a token came where none was expected")
                    return self._offer()
                case _Stage.CHOICE:
                    self._conclude(token)
                    return None
                case _:
                    raise AuthenticationError("the exchange is over")
        except GSSError as problem:
            self._stage = _Stage.DONE
            raise AuthenticationError(_told(problem)) from problem
        except (AuthenticationError, NoNameError) as problem:
            self._stage = _Stage.DONE
            raise AuthenticationError(str(problem)) from None

    def _negotiate(self, token: bytes) -> bytes:
        answer: bytes | None = self._context.step(token)
        if self._context.complete:
            self._stage = _Stage.OFFER
            if not answer:
                return self._offer()
        return answer or b""

    def _offer(self) -> bytes:
        self._stage = _Stage.CHOICE
        offer: bytes = self._context.wrap(_OFFER, False).message
        return offer

    def _conclude(self, token: bytes) -> None:
        choice: bytes = self._context.unwrap(token).message
        if len(choice) < _SHORTEST_CHOICE or choice[0] != NO_LAYER:
            raise AuthenticationError("the client chooses a layer that was not offered")
        self._stage = _Stage.DONE
        # What identity the client asks for is not looked at, as in Kafka: it is who its ticket says.
        self.identity = Identity(f"User:{self._names.name_of(str(self._context.initiator_name))}")


def _told(problem: Any) -> str:
    """GSSAPI's words, in one line."""
    return " ".join(str(problem).split())
