"""An error in its right places: for every API that a broker serves, in every version."""

from collections.abc import Iterator
from typing import Any

import pytest

from kavka.broker.faults.error_answers import refusal
from kavka.broker.requests.handling import Handler, load_handlers
from kavka.protocol import api
from kavka.protocol.api import ApiKey
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.schema import Message, schema_of
from tests.support.message_values import message_value

CODE = ErrorCode.KAFKA_STORAGE_ERROR
FAILED_OTHERWISE = {ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS}
"""The first two by ways of their own; ApiVersions has one error only, and says that."""


def served() -> Iterator[tuple[Handler, int]]:
    for key, handler in sorted(load_handlers(in_cluster=True).items()):
        if key not in FAILED_OTHERWISE:
            for version in range(handler.min_version, handler.max_version + 1):
                yield handler, version


def codes_in(message: Message, version: int) -> list[int]:
    """All error codes of a message, however deep."""
    found: list[int] = []
    for field in schema_of(type(message)).fields:
        if not field.exists_in(version):
            continue
        value: Any = getattr(message, field.name)
        if field.name.endswith("error_code") and field.tag is None:
            found.append(value)
        elif field.struct is not None and value is not None:
            for each in value if field.kind == "array" else [value]:
                found += codes_in(each, version)
    return found


@pytest.mark.parametrize(
    ("handler", "version"), [pytest.param(h, v, id=f"{ApiKey(h.api_key).title}-v{v}") for h, v in served()]
)
def test_the_answer_says_the_error_and_nothing_else(handler: Handler, version: int) -> None:
    request = message_value(handler.request_class, version, "full", 1)
    if handler.api_key == ApiKey.PRODUCE:
        request.acks = 1

    answer = refusal(handler, request, version, CODE, "as asked")
    read = decode(api.spec(handler.api_key).response_class, version, encode(answer, version))

    codes = codes_in(read, version)
    assert codes, "nowhere"
    assert set(codes) == {CODE}


@pytest.mark.parametrize("style", ["default", "empty", "null", "unknown-tags"])
def test_every_request_has_an_answer_that_can_be_sent(style: str) -> None:
    for handler, version in served():
        request = message_value(handler.request_class, version, style, 1)
        if handler.api_key == ApiKey.PRODUCE:
            request.acks = 1

        answer = refusal(handler, request, version, CODE, "as asked")

        decode(api.spec(handler.api_key).response_class, version, encode(answer, version))


def answered(handler_key: int, request: Any, version: int) -> Any:
    handler = load_handlers()[handler_key]
    return decode(
        api.spec(handler_key).response_class, version, encode(refusal(handler, request, version, CODE, None), version)
    )


@pytest.mark.parametrize("version", [0, 2, 5, 9])
def test_each_partition_of_a_request_for_offsets_has_the_error(version: int) -> None:
    from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (3, 1)]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[ListOffsetsTopic(name="o", partitions=asked)]
    )

    (topic,) = answered(ApiKey.LIST_OFFSETS, request, version).topics

    assert topic.name == "o"
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(3, CODE), (1, CODE)]
    if version >= 1:
        assert {each.offset for each in topic.partitions} == {-1}


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_a_search_for_coordinators_fails_by_key_where_there_are_several(version: int) -> None:
    from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest

    request = FindCoordinatorRequest(key="mine", key_type=0, coordinator_keys=["mine", "other"])

    answer = answered(ApiKey.FIND_COORDINATOR, request, version)

    if version < 4:
        assert (answer.error_code, answer.node_id, answer.port) == (CODE, -1, -1)
    else:
        assert [(each.key, each.error_code, each.node_id) for each in answer.coordinators] == [
            ("mine", CODE, -1),
            ("other", CODE, -1),
        ]


def test_epochs_are_refused_by_partition() -> None:
    from kavka.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
        OffsetForLeaderTopic,
    )

    asked = [OffsetForLeaderPartition(partition=7, leader_epoch=2)]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="o", partitions=asked)])

    (topic,) = answered(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, 4).topics

    assert (topic.topic, [(each.partition, each.error_code, each.end_offset) for each in topic.partitions]) == (
        "o",
        [(7, CODE, -1)],
    )


def test_a_handler_that_fails_has_an_answer_that_says_so_in_every_version() -> None:
    def has_place(handler: Handler, version: int) -> bool:
        fields = schema_of(api.spec(handler.api_key).response_class).fields
        return any(field.name == "error_code" and field.exists_in(version) for field in fields)

    silent = {
        (ApiKey(handler.api_key).title, version)
        for handler, version in served()
        if handler.error_answer is None and not has_place(handler, version)
    }
    # As Kafka's: no directories, and no word why.
    assert silent == {(ApiKey.DESCRIBE_LOG_DIRS.title, version) for version in (0, 1, 2)}
