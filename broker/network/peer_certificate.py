"""Who is at the other end of TLS."""

from typing import NamedTuple


class PeerCertificate(NamedTuple):
    """What a client has shown, and proved to be its own, to a listener that trusts it."""

    der: bytes
    principal: str
    """`User:NAME`, by `ssl.principal.mapping.rules`."""
