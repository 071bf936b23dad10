"""The one message of PLAIN (RFC 4616)."""


def plain_message(user: str, password: str, authorization_id: str = "") -> bytes:
    """What a client sends."""
    return "\0".join((authorization_id, user, password)).encode()


def read_plain(message: bytes) -> tuple[str, str, str]:
    """Authorization id, user, password, as Kafka reads them: what is missing is empty, what is too much is ignored."""
    # As Java does with bytes that are no UTF-8: they match nobody's password.
    parts = message.decode(errors="replace").split("\0", 3)
    authorization_id, user, password = (*parts[:3], "", "")[:3]
    return authorization_id, user, password
