"""PLAIN's message, read as Kafka reads it."""

import pytest

from kavka.protocol.sasl.plain import plain_message, read_plain


def test_what_a_client_sends_is_read() -> None:
    assert read_plain(plain_message("alice", "heslo číslo 1", "other")) == ("other", "alice", "heslo číslo 1")


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (b"", ("", "", "")),
        (b"alice", ("alice", "", "")),
        (b"\0alice", ("", "alice", "")),
        (b"\0alice\0", ("", "alice", "")),
        (b"\0alice\0secret\0more\0", ("", "alice", "secret")),
        (b"\0alice\0\xff\xfe", ("", "alice", "��")),
    ],
)
def test_what_is_missing_is_empty_and_what_is_too_much_is_ignored(message: bytes, parts: tuple[str, str, str]) -> None:
    assert read_plain(message) == parts
