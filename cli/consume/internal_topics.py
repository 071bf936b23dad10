"""The records of internal topics in words: `__consumer_offsets`, `__transaction_state`, `__share_group_state`.

    OffsetCommit group=billing topic=visits partition=0: offset=42 leader_epoch=3 metadata="" commit_timestamp=2026-...
    TransactionLog transactional_id=billing: producer_id=7 ... transaction_status=Ongoing transaction_partitions=[...]
    GroupMetadata group=billing: deleted

or as Kafka's own formatters do, in JSON (KIP-915):

    {"key":{"type":1,"data":{...}},"value":{"version":3,"data":{...}}}

What does not decode is shown as it is, escaped, with a note that says why.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka.cli.escaping import one_line
from kavka.cli.moments import moment_text
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.consumer_protocol import decode_assignment, decode_subscription
from kavka.protocol.internal.group_records import GROUP_RECORDS
from kavka.protocol.internal.record_codec import RecordTypes, decode_key, decode_value
from kavka.protocol.internal.share_records import SHARE_GROUP_RECORDS, SHARE_STATE_RECORDS
from kavka.protocol.internal.streams_records import STREAMS_GROUP_RECORDS
from kavka.protocol.internal.transaction_records import TRANSACTION_RECORDS
from kavka.protocol.schema import Message, Record, schema_of, uuid_to_text

RECORDS_OF: Final[Mapping[str, RecordTypes]] = {
    "__consumer_offsets": {**GROUP_RECORDS, **SHARE_GROUP_RECORDS, **STREAMS_GROUP_RECORDS},
    "__transaction_state": TRANSACTION_RECORDS,
    "__share_group_state": SHARE_STATE_RECORDS,
}
"""By topic: the records that it holds."""

_TRANSACTION_STATUS: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_MEMBER_STATE: Final = {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions", 127: "Unknown"}
_DELIVERY_STATE: Final = {0: "Available", 1: "Acquired", 2: "Acknowledged", 4: "Archived"}
_MOMENTS: Final = frozenset(
    {
        "commit_timestamp",
        "expire_timestamp",
        "current_state_timestamp",
        "assignment_timestamp",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "create_timestamp",
        "write_timestamp",
        "timestamp",
    }
)


class InternalRecord:
    """A record of an internal topic, decoded as far as it can be. Immutable."""

    def __init__(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self._raw: Final = (key, value)
        self.type: int | None = None
        """The number that the key begins with; None for bytes that are no key."""
        self.key: Record | None = None
        self.value: Record | None = None
        self.version: int | None = None
        self.note: str | None = None
        """Why not all of it is decoded; None when it is."""
        try:
            if key is None:
                raise DecodeError("a record without a key")
            self.key, value_class = decode_key(RECORDS_OF[topic], key)
            self.type = int.from_bytes(key[:2], "big", signed=True)
            if value is not None:
                self.value, self.version = decode_value(value_class, value)
        except DecodeError as error:
            self.note = str(error)

    def words(self) -> str:
        """The record on one line, for people."""
        key, value = self._raw
        if self.key is None:
            shown = "null" if value is None else f'"{one_line(value)}"'
            return f'key="{one_line(key or b"")}" value={shown} (not decoded: {self.note})'
        name = type(self.key).__name__.removesuffix("Key")
        head = f"{name} {_fields(self.key, 0)}"
        if value is None:
            return f"{head}: deleted"
        if self.value is None:
            return f'{head}: "{one_line(value)}" (not decoded: {self.note})'
        assert self.version is not None
        return f"{head}: {_fields(self.value, self.version)}"

    def as_kafka(self) -> dict[str, Any]:
        """Key and value as Kafka's formatters have them; with `note` and the bytes where they do not decode."""
        key, value = self._raw
        shown: dict[str, Any] = {}
        if self.key is None:
            shown["key"] = {"bytes": None if key is None else base64.b64encode(key).decode()}
        else:
            shown["key"] = {"type": self.type, "data": _json(self.key, 0)}
        if value is None:
            shown["value"] = None
        elif self.value is None or self.version is None:
            shown["value"] = {"bytes": base64.b64encode(value).decode()}
        else:
            shown["value"] = {"version": self.version, "data": _json(self.value, self.version)}
        if self.note is not None:
            shown["note"] = self.note
        return shown


def kafka_json(record: InternalRecord) -> str:
    """The record's line as Kafka's formatters print it."""
    return json.dumps(record.as_kafka(), separators=(",", ":"))


def _fields(message: Message, version: int) -> str:
    shown = []
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        if not field.exists_in(version) or (field.tag is not None and field.is_default(value)):
            continue
        shown.append(f"{field.name}={_word(field.name, value, version, message)}")
    return " ".join(shown)


def _word(name: str, value: Any, version: int, owner: Message) -> str:
    if isinstance(value, Message):
        return "{" + _fields(value, version) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_word(name, each, version, owner) for each in value) + "]"
    if isinstance(value, bytes | memoryview):
        return _bytes_word(name, bytes(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if name == "metadata" or not _is_plain(value) else value
    if value is None:
        return "null"
    if name in _MOMENTS:
        return moment_text(value)
    named = _NAMED.get((type(owner).__name__, name))
    return str(value) if named is None else named(value)


def _is_plain(text: str) -> bool:
    return bool(text) and text.isprintable() and not any(c in ' "=[]{},:' for c in text)


def _bytes_word(name: str, data: bytes) -> str:
    if len(data) == 16 and name.endswith("topic_id"):
        return uuid_to_text(data)
    try:
        if name in ("subscription", "metadata") and data:
            subscription, _ = decode_subscription(data)
            return (
                "{topics=[" + ", ".join(subscription.topics) + "]}"
                if _all_plain(subscription.topics)
                else _quoted(data)
            )
        if name == "assignment" and data:
            assignment, _ = decode_assignment(data)
            names = [each.topic for each in assignment.assigned_partitions]
            if _all_plain(names):
                shares = [f"{each.topic}={each.partitions}" for each in assignment.assigned_partitions]
                return "{" + ", ".join(shares) + "}"
    except DecodeError:
        pass  # another protocol's bytes (Connect, Streams, a registry): shown as they are
    return _quoted(data)


def _all_plain(names: list[str]) -> bool:
    return all(map(_is_plain, names))


def _quoted(data: bytes) -> str:
    return f'"{one_line(data)}"'


def _status(number: int) -> str:
    return _TRANSACTION_STATUS[number] if 0 <= number < len(_TRANSACTION_STATUS) else str(number)


_NAMED: Final[dict[tuple[str, str], Callable[[int], str]]] = {
    ("TransactionLogValue", "transaction_status"): _status,
    ("ConsumerGroupCurrentMemberAssignmentValue", "state"): lambda number: _MEMBER_STATE.get(number, str(number)),
    ("StateBatch", "delivery_state"): lambda number: _DELIVERY_STATE.get(number, str(number)),
}


def _json(message: Message, version: int) -> dict[str, Any]:
    """As the generated JsonConverters: names in camel case, no tagged field that has its default."""
    fields: dict[str, Any] = {}
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        if field.exists_in(version) and not (field.tag is not None and field.is_default(value)):
            fields[_camel(field.name)] = _json_value(value, version, is_uuid="uuid" in (field.kind, field.element))
    return fields


def _json_value(value: Any, version: int, *, is_uuid: bool) -> Any:
    if isinstance(value, Message):
        return _json(value, version)
    if isinstance(value, list | tuple):
        return [_json_value(each, version, is_uuid=is_uuid) for each in value]
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        return uuid_to_text(data) if is_uuid else base64.b64encode(data).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
