"""SCRAM credentials as they stand in `/config/users/U`: one setting a mechanism, beside the user's quotas.

    {"version":1,"config":{"SCRAM-SHA-256":"salt=...,stored_key=...,server_key=...,iterations=4096"}}

The text is Kafka's (ScramCredentialUtils). What is read comes from outside: it gives a value, or raises ValueError
without a word of what it holds.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cluster.znodes.config import DEFAULT_ENTITY, node_name, text_of_node

if TYPE_CHECKING:
    from kavka.protocol.sasl.scram import ScramCredential

USERS: Final = "users"
MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""As the wire numbers them (ScramMechanism), and as SASL and the tree name them."""
MOST_CHARACTERS: Final = 4096
"""Of a credential's text: what one holds takes some hundred."""
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")
_MOST_ITERATIONS: Final = (1 << 31) - 1
_KAFKAS_SALTS: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")


class Look(NamedTuple):
    """What everybody may see of a credential who begins to log in by it."""

    iterations: int
    salt_bytes: int
    is_kafkas: bool
    """Whether the salt is text, as Kafka makes them."""


def credential_text(credential: ScramCredential) -> str:
    """As Kafka writes it."""
    salt, stored_key, server_key = (
        base64.b64encode(each).decode() for each in (credential.salt, credential.stored_key, credential.server_key)
    )
    return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={credential.iterations}"


def parse_credential(text: str) -> ScramCredential:
    """Raises ValueError, which does not show the text."""
    # A broker without SASL loads none of it.
    from kavka.protocol.sasl.scram import ScramCredential

    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a credential of {len(text)} characters")
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if len(fields) != len(_FIELDS) or not all(fields.get(name) for name in _FIELDS):
        raise ValueError(f"a credential has the fields {', '.join(_FIELDS)}")
    iterations = fields["iterations"]
    if not (iterations.isascii() and iterations.isdigit() and 0 < int(iterations) <= _MOST_ITERATIONS):
        raise ValueError("a credential's iterations are a number")
    try:
        salt, stored_key, server_key = (base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3])
    except binascii.Error:
        raise ValueError("a credential's bytes are base64") from None
    return ScramCredential(salt, stored_key, server_key, int(iterations))


def look_of(text: str) -> Look | None:
    """None for what nobody can log in by."""
    from kavka.protocol.sasl.scram import MIN_ITERATIONS

    try:
        credential = parse_credential(text)
    except ValueError:
        return None
    if credential.iterations < MIN_ITERATIONS:
        return None
    return Look(credential.iterations, len(credential.salt), _KAFKAS_SALTS.issuperset(credential.salt))


def entity_of_user(user: str) -> str:
    """The path below `/config` of what is set for a user."""
    return f"{USERS}/{node_name(user)}"


def user_of_node(name: str) -> str | None:
    """The user whose node that is; None for the defaults of all users, and for what no writer names a node."""
    user = text_of_node(name)
    return user if name != DEFAULT_ENTITY and node_name(user) == name else None
