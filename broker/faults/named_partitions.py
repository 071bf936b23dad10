"""Which topics and partitions a request names, whatever its API: read off the message's declaration."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.schema import Message, schema_of

if TYPE_CHECKING:
    from kavka.broker.services import Services

ALL: Final = -1
"""Stands for the partition where a request is about a topic as a whole."""
TOPIC_RESOURCE: Final = 2
FINAL_EPOCH: Final = -1
_TOPIC_NAMES: Final = ("topic", "topic_name", "name")
_PARTITION_NAMES: Final = ("partition_index", "partition", "index", "partition_id")


def named_partitions(request: Message, services: "Services") -> list[tuple[str, int]]:
    """(topic, partition) of each, or (topic, ALL); of a fetch that goes on with a session, those of the session too."""
    ids: Mapping[bytes, str] = services.metadata.current.names_by_id
    found = list(_named(request, ids))
    if isinstance(request, FetchRequest) and request.session_epoch > 0:
        session = services.fetch_sessions.session_of(request)
        if session is not None:
            # Copied at once: its client may go on with it on another connection meanwhile.
            found += [(known.key[0], known.key[2]) for known in list(session.partitions.values())]
    return found


def _named(message: Message, ids: Mapping[bytes, str]) -> Iterator[tuple[str, int]]:
    if getattr(message, "resource_type", None) == TOPIC_RESOURCE and hasattr(message, "resource_name"):
        yield message.resource_name, ALL
    for field in schema_of(type(message)).fields:
        value: Any = getattr(message, field.name)
        if field.kind != "array" or not value or field.name.startswith("forgotten"):
            continue
        if field.struct is None:
            if field.element == "string" and "topic" in field.name:
                yield from ((name, ALL) for name in value)
            continue
        for each in value:
            name = topic_of(each, ids) if _is_of_topics(field.name, each) else None
            if name is None:
                yield from _named(each, ids)
            else:
                yield from ((name, index) for index in _indexes(each))


def _is_of_topics(array: str, element: Message) -> bool:
    """Not every `name` is a topic's."""
    return "topic" in array or hasattr(element, "topic_id") or hasattr(element, "topic")


def topic_of(struct: Any, ids: Mapping[bytes, str]) -> str | None:
    """The topic's name in a struct that is about one; empty where its id is not known. None: it is not about one."""
    known = [name for each in _TOPIC_NAMES if isinstance(name := getattr(struct, each, None), str)]
    if named := next((name for name in known if name), None):
        return named
    topic_id = getattr(struct, "topic_id", None)
    if topic_id is not None:
        return ids.get(topic_id, "")
    return "" if known else None


def index_of(struct: Any) -> int | None:
    """The partition's index in a struct that is about one."""
    return next((int(getattr(struct, each)) for each in _PARTITION_NAMES if hasattr(struct, each)), None)


def _indexes(topic: Message) -> list[int]:
    indexes: list[int] = []
    for field in schema_of(type(topic)).fields:
        if field.kind != "array" or "partition" not in field.name:
            continue
        for each in getattr(topic, field.name) or ():
            index = each if field.struct is None else index_of(each)
            if index is not None:
                indexes.append(index)
    return indexes or [ALL]
