"""OAUTHBEARER's first message, as Kafka's clients send it and nobody else may."""

import pytest

from kavka.protocol.sasl.oauthbearer import BearerError, bearer_error, bearer_first, read_bearer_first


def test_what_a_client_sends_is_read() -> None:
    message = bearer_first("a.b-c_d.e", {"logicalCluster": "lkc 1", "x": "y"})

    assert message == b"n,,\x01auth=Bearer a.b-c_d.e\x01logicalCluster=lkc 1\x01x=y\x01\x01"
    first = read_bearer_first(message)
    assert (first.token, first.authorization_id, dict(first.extensions)) == (
        "a.b-c_d.e",
        "",
        {"logicalCluster": "lkc 1", "x": "y"},
    )
    assert "a.b" not in repr(first)


def test_the_scheme_is_read_in_any_case_and_an_authorization_id_with_it() -> None:
    first = read_bearer_first(b"n,a=me,\x01auth=bEARER   t\x01\x01")
    assert (first.token, first.authorization_id) == ("t", "me")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer t t\x01\x01",
        b"n,,\x01auth=Bearer t\n\x01\x01",
        b"n,,\x01auth=Bearer \xc3\xa1\x01\x01",
        b"n,,\x01other=Bearer t\x01\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
    ],
)
def test_what_does_not_fit_is_refused(message: bytes) -> None:
    with pytest.raises(BearerError):
        read_bearer_first(message)


def test_errors_are_json() -> None:
    assert bearer_error("invalid_token") == '{"status":"invalid_token"}'
    assert bearer_error("insufficient_scope", 'a "b') == '{"status":"insufficient_scope", "scope":"a \\"b"}'
