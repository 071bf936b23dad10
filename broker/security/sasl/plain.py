"""PLAIN (RFC 4616): name and password as they are. Users and passwords are options of the listener's JAAS text.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="...";
"""

import hmac
from collections.abc import Mapping
from typing import Final

from kavka.broker.security.sasl.mechanisms import Identity, ToldError
from kavka.protocol.sasl.plain import PlainError, read_plain

USER_OPTION: Final = "user_"
_INVALID: Final = "Authentication failed: Invalid username or password"
_OTHER_ID: Final = "Authentication failed: Client requested an authorization id that is different from username"


class Plain:
    """The users of one listener. Immutable."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options`: those of the login module."""
        self._passwords = {
            name.removeprefix(USER_OPTION): password.encode()
            for name, password in options.items()
            if name.startswith(USER_OPTION)
        }

    def login(self) -> "PlainLogin":
        """Begin a client's login."""
        return PlainLogin(self._passwords)


class PlainLogin:
    """One client's. Threads: one at a time."""

    def __init__(self, passwords: Mapping[str, bytes]) -> None:
        self._passwords = passwords
        self.identity: Identity | None = None

    def respond(self, token: bytes) -> bytes:
        """Nothing, if name and password are right. Raises AuthenticationError."""
        try:
            authorization_id, user, password = read_plain(token)
        except PlainError as problem:
            raise ToldError(str(problem)) from None
        # No password is empty, so that an unknown user's matches none.
        if not hmac.compare_digest(password.encode(), self._passwords.get(user, b"")):
            raise ToldError(_INVALID)
        if authorization_id not in ("", user):
            raise ToldError(_OTHER_ID)
        self.identity = Identity(f"User:{user}")
        return b""
