"""PLAIN's message, read as Kafka reads it."""

import pytest

from kavka.protocol.sasl.plain import PlainError, plain_message, read_plain


def test_what_a_client_sends_is_read() -> None:
    assert read_plain(plain_message("alice", "heslo číslo 1", "other")) == ("other", "alice", "heslo číslo 1")


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"alice", "expected 3 tokens, got 1"),
        (b"\0alice", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0more\0", "expected 3 tokens, got 4"),
        (b"\0alice\0", "password not specified"),
        (b"\0\0secret", "username not specified"),
    ],
)
def test_what_does_not_fit_is_refused(message: bytes, complaint: str) -> None:
    with pytest.raises(PlainError, match=complaint):
        read_plain(message)


def test_what_is_no_text_matches_nothing() -> None:
    assert read_plain(b"\0alice\0\xff\xfe") == ("", "alice", "\ufffd\ufffd")
