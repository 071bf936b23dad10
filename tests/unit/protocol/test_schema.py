"""Declarations: the table of APIs, defaults, shared structs, UUIDs, lazy imports."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.api import VERSIONS, ApiKey, spec
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kavka.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from kavka.protocol.messages.fetch import FetchRequest, PartitionData
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.produce import ProduceResponse
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.schema import ZERO_UUID, Message, Struct, schema_of, text_to_uuid, uuid_to_text
from tests.support.message_values import all_message_versions

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("key", VERSIONS, ids=lambda key: ApiKey(key).title)
def test_the_table_of_apis_agrees_with_the_declarations(key: int) -> None:
    api = spec(key)
    for cls in (api.request_class, api.response_class):
        schema = schema_of(cls)
        assert (schema.key, schema.first, schema.last, schema.flexible_since) == (
            key,
            *api.versions,
            api.flexible_since,
        )


def test_every_message_module_is_in_the_table() -> None:
    modules = {path.stem for path in (ROOT / "protocol" / "messages").glob("*.py")} - {"__init__"}

    assert modules == {ApiKey(key).name.lower() for key in VERSIONS}


def test_declared_fields_exist_and_tags_are_for_flexible_versions_alone() -> None:
    for cls in {cls for cls, _ in all_message_versions()}:
        flexible_since = schema_of(cls).flexible_since
        for schema in structs_in(cls):
            tags = [field.tag for field in schema_of(schema).fields if field.tag is not None]
            assert len(tags) == len(set(tags)), schema
            for field in schema_of(schema).fields:
                assert field.first <= field.last, (schema, field.name)
                assert field.tag is None or max(field.first, schema_of(cls).first) >= flexible_since, (
                    schema,
                    field.name,
                )


def test_lists_belong_to_one_message_alone() -> None:
    first, second = ProduceResponse(responses=[]), MetadataRequest()
    assert second.topics == []
    second.topics.append(MetadataRequestTopic(name="t"))
    assert MetadataRequest().topics == []
    assert first.node_endpoints is not ProduceResponse(responses=[]).node_endpoints


def test_the_shared_default_of_a_struct_cannot_be_changed() -> None:
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=0, records=b"")

    with pytest.raises(AttributeError, match="shared"):
        partition.current_leader.leader_id = 3
    assert partition.current_leader.leader_id == -1


def test_an_unknown_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no_such_field"):
        FetchRequest(**dict[str, Any](no_such_field=1))


def test_messages_compare_by_content_and_say_what_they_hold() -> None:
    one = MetadataRequest(topics=None)

    assert one == MetadataRequest(topics=None)
    assert one != MetadataRequest(topics=[])
    assert one != "something else"
    assert "topics=None" in repr(one)


def test_messages_do_not_say_what_proves_who_somebody_is() -> None:
    secret = b"hunter2"
    messages = (
        SaslAuthenticateRequest(auth_bytes=secret),
        CreateDelegationTokenResponse(
            error_code=0,
            principal_type="User",
            principal_name="alice",
            issue_timestamp_ms=1,
            expiry_timestamp_ms=2,
            max_timestamp_ms=3,
            token_id="one",
            hmac=secret,
        ),
        AlterUserScramCredentialsRequest(
            deletions=[],
            upsertions=[
                ScramCredentialUpsertion(name="a", mechanism=1, iterations=4096, salt=b"", salted_password=secret)
            ],
        ),
    )

    assert not any("hunter2" in repr(each) for each in messages)
    assert "auth_bytes=[7 bytes, hidden]" in repr(messages[0])
    assert "auth_bytes=b''" in repr(SaslAuthenticateRequest(auth_bytes=b""))


def test_uuids_have_kafkas_text_form() -> None:
    value = bytes(range(0xF0, 0x100))

    assert uuid_to_text(ZERO_UUID) == "A" * 22
    assert uuid_to_text(value) == "8PHy8_T19vf4-fr7_P3-_w"
    assert text_to_uuid(uuid_to_text(value)) == value


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 21 + "=", "!" * 22, "A" * 21 + "é"])
def test_other_texts_are_not_uuids(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # base64 has its own words for it
        text_to_uuid(text)


def test_errors_know_whether_to_retry_and_speak_plainly() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.INVALID_TOPIC_EXCEPTION.retriable
    assert str(BrokerError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG: no such key"
    assert str(BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)) == "UNKNOWN_TOPIC_ID: Unknown topic id."


def test_importing_the_protocol_imports_no_message_and_compiles_nothing() -> None:
    script = (
        "import sys, kavka.protocol.codec, kavka.protocol.headers, kavka.protocol.api;"
        "assert not [name for name in sys.modules if name.startswith('kavka.protocol.messages')], sys.modules;"
        "from kavka.protocol.messages import fetch;"
        "from kavka.protocol import codec, layout;"
        "assert not codec._DECODERS and not layout._LAYOUTS;"
        "assert fetch.FetchRequest.__schema__ is None"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def structs_in(cls: type[Message]) -> set[type[Message]]:
    found = {cls}
    for field in schema_of(cls).fields:
        if field.struct is not None:
            assert issubclass(field.struct, Struct)
            found |= structs_in(field.struct)
    return found
