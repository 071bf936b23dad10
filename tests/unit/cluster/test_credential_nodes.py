"""Users' SCRAM credentials and delegation tokens as they stand in the tree, byte for byte as Kafka's."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cluster.znodes.delegation_token import DelegationTokenNode, TokenInformation, token_of_notice
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.scram_credential import (
    MOST_CHARACTERS,
    credential_text,
    entity_of_user,
    parse_credential,
    user_of_node,
)
from kavka.protocol.sasl.scram import ScramCredential
from tests.support.examples import examples

TEXT = (
    "salt=MXYxazRiZnRkMWIyc3VodTMzNnJwcm0zYQ==,stored_key=ZkoyPrlUA1+NY3MRVB5+Tfo0bRzBaJYJhNmPlQDoO48=,"
    "server_key=OZrNFQ8WJXVYFZFaVSaoAwcTQtNxmTzNkLkQUBbFCyA=,iterations=4096"
)
TOKEN = TokenInformation(
    "vY5Q-uC9TbWhC2bqgFs8xw", "User:alice", "User:al ice*", ("User:bob", "User:ö"), 1_700_000, 9_000_000, 2_000_000
)


def test_a_credential_is_read_and_written_as_kafka_does() -> None:
    credential = parse_credential(TEXT)

    assert credential.salt == b"1v1k4bftd1b2suhu336rprm3a"
    assert credential.iterations == 4096
    assert len(credential.stored_key) == len(credential.server_key) == 32
    assert credential_text(credential) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        ",,,",
        TEXT.replace("salt=", "pepper="),
        TEXT.replace("4096", "-1"),
        TEXT.replace("4096", "4" * 30),
        TEXT.replace("4096", "0"),
        TEXT.replace("ZkoyPrl", "Zkoy!rl"),
        f"{TEXT},iterations=5000,more=1",
        TEXT.replace("MXYxazRiZnRkMWIyc3VodTMzNnJwcm0zYQ==", "A" * MOST_CHARACTERS),
    ],
)
def test_what_is_no_credential_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="credential") as refused:
        parse_credential(text)

    assert text == "" or text not in str(refused.value)
    assert "Zkoy" not in str(refused.value)


@examples(200)
@given(st.text(max_size=300))
def test_any_text_is_a_credential_or_a_value_error(text: str) -> None:
    for each in (text, TEXT[: len(text)] + text, TEXT + text):
        try:
            parse_credential(each)
        except ValueError:
            continue


def test_a_credential_does_not_print_its_keys() -> None:
    assert "stored" not in repr(ScramCredential(b"salt", b"stored", b"server", 4096))


def test_users_are_named_as_kafka_names_their_nodes() -> None:
    assert entity_of_user("a b*c/ö") == "users/a%20b%2Ac%2F%C3%B6"
    assert user_of_node("a%20b%2Ac%2F%C3%B6") == "a b*c/ö"
    assert user_of_node("<default>") is None
    assert user_of_node("a b") is None
    assert user_of_node("alice/clients/c") is None


def test_a_token_is_written_in_version_3_with_sanitised_principals() -> None:
    stored = json.loads(DelegationTokenNode.encode(TOKEN))

    assert stored == {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Aal%20ice%2A",
        "renewers": ["User%3Abob", "User%3A%C3%B6"],
        "issueTimestamp": 1_700_000,
        "maxTimestamp": 9_000_000,
        "expiryTimestamp": 2_000_000,
        "tokenId": TOKEN.token_id,
    }
    assert DelegationTokenNode.decode(TOKEN.token_id, DelegationTokenNode.encode(TOKEN)) == TOKEN


def test_an_older_token_was_asked_for_by_its_owner() -> None:
    stored = json.loads(DelegationTokenNode.encode(TOKEN))
    del stored["tokenRequester"]
    stored["version"] = 1

    assert DelegationTokenNode.decode(TOKEN.token_id, json.dumps(stored).encode()).requester == "User:alice"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 4},
        {"owner": 5},
        {"owner": "nobody"},
        {"owner": "%3Aalice"},
        {"renewers": "User%3Abob"},
        {"renewers": ["bob"]},
        {"tokenId": "another"},
        {"expiryTimestamp": "2000"},
        {"maxTimestamp": -1},
        {"maxTimestamp": 1 << 63},
        {"renewers": ["User%3Abob"] * 20_000},
    ],
)
def test_a_token_that_nobody_wrote_so_cannot_be_read(change: dict[str, object]) -> None:
    stored = json.loads(DelegationTokenNode.encode(TOKEN)) | change

    with pytest.raises(ZnodeError):
        DelegationTokenNode.decode(TOKEN.token_id, json.dumps(stored).encode())


@examples(200)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_token_or_an_error(data: bytes) -> None:
    with pytest.raises(ZnodeError):
        DelegationTokenNode.decode("id", data)


@pytest.mark.parametrize("data", [b"", b"\xff", b"a/b", b"..", "ö".encode(), b"a\nb", b"x" * 300])
def test_a_notice_that_names_no_token_is_refused(data: bytes) -> None:
    with pytest.raises(ZnodeError):
        token_of_notice("token_change_0000000001", data)
