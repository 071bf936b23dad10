"""Who signs tokens: keys of each kind, tokens signed with them, and the set of keys that is published."""

from __future__ import annotations

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm


class Issuer:
    """Keys by name; each may sign with its algorithm."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()

    def jwk(self, name: str, **more: Any) -> dict[str, Any]:
        """A published key."""
        kind: Any = {"rsa": RSAAlgorithm, "ec": ECAlgorithm, "ed": OKPAlgorithm}[name]
        published: dict[str, Any] = json.loads(kind.to_jwk(getattr(self, name).public_key()))
        published.pop("key_ops", None)
        return {**published, "kid": name, **more}

    def jwks(self, *names: str) -> bytes:
        """The set of these keys."""
        return json.dumps({"keys": [self.jwk(each) for each in names or ("rsa", "ec", "ed")]}).encode()

    def token(
        self,
        claims: dict[str, Any],
        key: str = "rsa",
        algorithm: str | None = None,
        kid: str | None = "same",
        **head: Any,
    ) -> str:
        """A token signed by a key; `kid` is the key's own name unless another is given, or none."""
        chosen = algorithm or {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}[key]
        headers = {**({} if kid is None else {"kid": key if kid == "same" else kid}), **head}
        return jwt.encode(claims, getattr(self, key), algorithm=chosen, headers=headers)
