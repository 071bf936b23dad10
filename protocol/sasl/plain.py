"""The one message of PLAIN (RFC 4616)."""


def plain_message(user: str, password: str, authorization_id: str = "") -> bytes:
    """What a client sends."""
    return "\0".join((authorization_id, user, password)).encode()


class PlainError(Exception):
    """A message that does not fit, in Kafka's words; with nothing of it."""


def read_plain(message: bytes) -> tuple[str, str, str]:
    """Authorization id, user and password; only the first may be empty. Raises PlainError."""
    # Bytes that are no UTF-8 are replaced, as by Java: they match nobody's password.
    parts = message.decode(errors="replace").split("\0", 3)
    if len(parts) != 3:
        raise PlainError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    authorization_id, user, password = parts
    if not user:
        raise PlainError("Authentication failed: username not specified")
    if not password:
        raise PlainError("Authentication failed: password not specified")
    return authorization_id, user, password
