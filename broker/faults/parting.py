"""A request of several partitions, some of which are hit: the others are served, and both answers become one."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from kavka.broker.faults.error_answers import IsHit
from kavka.broker.faults.named_partitions import ALL, index_of, topic_of
from kavka.protocol.api import ApiKey
from kavka.protocol.schema import Message, schema_of

PARTED: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_TOPICS,
    }
)
"""APIs whose partitions, or topics, fail one by one. Of any other the whole request fails."""


def parted(request: Any, ids: Mapping[bytes, str], is_hit: IsHit) -> tuple[Any, Any]:
    """(what of the request is hit, what is not), each a request of the same kind; None for the second if all is."""
    hit, rest = copy.copy(request), copy.copy(request)
    left = False
    for field in schema_of(type(request)).fields:
        if field.kind != "array" or not field.name.startswith("topic"):
            continue
        mine, others = _divided(getattr(request, field.name) or [], ids, is_hit)
        setattr(hit, field.name, mine)
        setattr(rest, field.name, others)
        left = left or bool(others)
    return hit, rest if left else None


def joined(response: Any, refused: Any) -> Any:
    """Both answers in the first."""
    for field in schema_of(type(response)).fields:
        more = getattr(refused, field.name) if field.kind == "array" and field.struct is not None else ()
        if more and hasattr(more[0], "partitions") | hasattr(more[0], "partition_responses") | hasattr(more[0], "name"):
            setattr(response, field.name, [*getattr(response, field.name), *more])
    return response


def _divided(topics: list[Any], ids: Mapping[bytes, str], is_hit: IsHit) -> tuple[list[Any], list[Any]]:
    mine: list[Any] = []
    others: list[Any] = []
    for topic in topics:
        if isinstance(topic, str):
            (mine if is_hit(topic, ALL) else others).append(topic)
            continue
        name = topic_of(topic, ids) or ""
        array = _partitions_field(topic)
        if array is None:
            (mine if is_hit(name, ALL) else others).append(topic)
            continue
        partitions = getattr(topic, array)
        hit = [each for each in partitions if is_hit(name, _index(each))]
        rest = [each for each in partitions if not is_hit(name, _index(each))]
        for found, to in ((hit, mine), (rest, others)):
            if found:
                part = copy.copy(topic)
                setattr(part, array, found)
                to.append(part)
    return mine, others


def _partitions_field(topic: Message) -> str | None:
    fields = schema_of(type(topic)).fields
    return next((each.name for each in fields if each.kind == "array" and each.name.startswith("partition")), None)


def _index(partition: Any) -> int:
    index = partition if isinstance(partition, int) else index_of(partition)
    return ALL if index is None else index
