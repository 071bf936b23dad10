"""`/delegation_token`: tokens by which clients are known as their owners for a while (KIP-48, KIP-373).

    /delegation_token/tokens/ID                      DelegationTokenNode
    /delegation_token/token_changes/token_change_    (S) the id of a token that was written or removed, as text

What authenticates, the token's HMAC, is not stored: who has the cluster's secret works it out of the id.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kavka.cluster.znodes.config import node_name, text_of_node
from kavka.cluster.znodes.json_data import INT64_MAX, Fields, ZnodeError, encode_json

TOKENS_PATH: Final = "/delegation_token/tokens"
TOKEN_CHANGES_PATH: Final = "/delegation_token/token_changes"
TOKEN_CHANGE_PREFIX: Final = "/delegation_token/token_changes/token_change_"
MOST_RENEWERS: Final = 10_000
MOST_ID_CHARACTERS: Final = 255
VERSION: Final = 3
_WITH_REQUESTER: Final = 3


class TokenInformation(NamedTuple):
    """What is stored of a token. Principals are written `User:NAME`; times are of the epoch's milliseconds."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiry_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_timestamp_ms < now_ms or self.expiry_timestamp_ms < now_ms

    def is_owned_or_renewed_by(self, principal: str) -> bool:
        return principal == self.owner or principal in self.renewers


class DelegationTokenNode:
    """`/delegation_token/tokens/ID`, in version 3; 1 and 2, which name no requester, are read."""

    @staticmethod
    def path(token_id: str) -> str:
        return f"{TOKENS_PATH}/{token_id}"

    @staticmethod
    def encode(token: TokenInformation) -> bytes:
        # In the order in which Kafka's map has them.
        return encode_json(
            {
                "issueTimestamp": token.issue_timestamp_ms,
                "renewers": [node_name(renewer) for renewer in token.renewers],
                "tokenRequester": node_name(token.requester),
                "tokenId": token.token_id,
                "owner": node_name(token.owner),
                "expiryTimestamp": token.expiry_timestamp_ms,
                "maxTimestamp": token.max_timestamp_ms,
                "version": VERSION,
            }
        )

    @staticmethod
    def decode(token_id: str, data: bytes) -> TokenInformation:
        """Raises ZnodeError."""
        fields = Fields.parse(DelegationTokenNode.path(token_id), data)
        version = fields.integer("version", low=1, high=VERSION)
        if fields.text("tokenId") != token_id:
            raise ZnodeError(fields.path, "it has another token's id")
        owner = _principal(fields, fields.text("owner"))
        renewers = fields.texts("renewers")
        if len(renewers) > MOST_RENEWERS:
            raise ZnodeError(fields.path, f"{len(renewers)} renewers")
        return TokenInformation(
            token_id,
            owner,
            _principal(fields, fields.text("tokenRequester")) if version >= _WITH_REQUESTER else owner,
            tuple(_principal(fields, each) for each in renewers),
            fields.integer("issueTimestamp", high=INT64_MAX),
            fields.integer("maxTimestamp", high=INT64_MAX),
            fields.integer("expiryTimestamp", high=INT64_MAX),
        )


def _principal(fields: Fields, stored: str) -> str:
    principal = text_of_node(stored)
    kind, colon, _ = principal.partition(":")
    if not kind or not colon:
        raise ZnodeError(fields.path, "a principal is written Type:name")
    return principal


def token_of_notice(name: str, data: bytes) -> str:
    """The token's id. Raises ZnodeError."""
    try:
        token_id = data.decode()
    except UnicodeDecodeError:
        token_id = ""
    if not is_token_id(token_id):
        raise ZnodeError(f"{TOKEN_CHANGES_PATH}/{name}", "it names no token")
    return token_id


def is_token_id(text: str) -> bool:
    """Whether a node could have that name."""
    is_clean = text.isascii() and text.isprintable() and "/" not in text and text not in (".", "..")
    return is_clean and 0 < len(text) <= MOST_ID_CHARACTERS
