"""Records as Kafka's console consumer shows them: the value, and what of the rest is asked for before it.

    CreateTime:1767250800000 <tab> Partition:0 <tab> Offset:42 <tab> name:value,name:value <tab> key <tab> value

The names of the properties are those of its DefaultMessageFormatter.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kavka.cli.consume.shown_record import ShownRecord

Decode = Callable[[ShownRecord, bytes], bytes]
_TIMESTAMP_TYPES: Final = (b"CreateTime", b"LogAppendTime")
PROPERTIES: Final = frozenset(
    {
        "print.timestamp",
        "print.partition",
        "print.offset",
        "print.delivery",
        "print.epoch",
        "print.headers",
        "print.key",
        "print.value",
        "key.separator",
        "line.separator",
        "headers.separator",
        "null.literal",
        "key.deserializer",
        "value.deserializer",
        "headers.deserializer",
    }
)


class Decoders(NamedTuple):
    """What makes text of a record's parts; with `plain` they are shown as they are."""

    key: Decode
    value: Decode
    header: Decode


class PlainFormat:
    """Makes bytes of records by properties. Immutable: for any thread."""

    def __init__(
        self, properties: Mapping[str, str], escape: Callable[[bytes], bytes], decoders: Decoders | None = None
    ) -> None:
        """`escape` is called with what comes from records. Raises ValueError for a property that nobody knows."""
        known = {name: value for name, value in properties.items() if _is_known(name)}
        if unknown := sorted(properties.keys() - known.keys()):
            raise ValueError(f"there is no property {unknown[0]}; there are {', '.join(sorted(PROPERTIES))}")
        self._escape: Final = escape
        self._decoders: Final = decoders
        self._null: Final = properties.get("null.literal", "null").encode()
        self._separator: Final = properties.get("key.separator", "\t").encode()
        self._line_end: Final = properties.get("line.separator", "\n").encode()
        self._headers_separator: Final = properties.get("headers.separator", ",").encode()
        self._parts: Final = [
            part
            for name, part, is_shown in (
                ("print.timestamp", self._timestamp, False),
                ("print.partition", self._partition, False),
                ("print.offset", self._offset, False),
                ("print.delivery", self._delivery, False),
                ("print.epoch", self._epoch, False),
                ("print.headers", self._headers, False),
                ("print.key", self._key, False),
                ("print.value", self._value, True),
            )
            if _is_true(properties.get(name), is_shown)
        ]

    def __call__(self, record: ShownRecord) -> bytes:
        return self._separator.join([part(record) for part in self._parts]) + self._line_end

    def _timestamp(self, record: ShownRecord) -> bytes:
        if record.timestamp_ms == -1:
            return b"NO_TIMESTAMP"
        return b"%s:%d" % (_TIMESTAMP_TYPES[record.timestamp_type], record.timestamp_ms)

    def _partition(self, record: ShownRecord) -> bytes:
        return b"Partition:%d" % record.partition

    def _offset(self, record: ShownRecord) -> bytes:
        return b"Offset:%d" % record.offset

    def _delivery(self, _record: ShownRecord) -> bytes:
        return b"Delivery:NOT_PRESENT"

    def _epoch(self, record: ShownRecord) -> bytes:
        return b"Epoch:NOT_PRESENT" if record.leader_epoch is None else b"Epoch:%d" % record.leader_epoch

    def _headers(self, record: ShownRecord) -> bytes:
        decode = None if self._decoders is None else self._decoders.header
        shown = [
            self._escape(name.encode()) + b":" + self._shown(record, value, decode) for name, value in record.headers
        ]
        return self._headers_separator.join(shown) if shown else b"NO_HEADERS"

    def _key(self, record: ShownRecord) -> bytes:
        return self._shown(record, record.key, None if self._decoders is None else self._decoders.key)

    def _value(self, record: ShownRecord) -> bytes:
        return self._shown(record, record.value, None if self._decoders is None else self._decoders.value)

    def _shown(self, record: ShownRecord, data: bytes | None, decode: Decode | None) -> bytes:
        if data is None:
            return self._null
        return self._escape(data if decode is None else decode(record, data))


def _is_known(name: str) -> bool:
    return name in PROPERTIES or name.startswith(("key.deserializer.", "value.deserializer.", "headers.deserializer."))


def _is_true(text: str | None, default: bool) -> bool:
    return default if text is None else text.strip().lower() == "true"


def decoders_of(properties: Mapping[str, str]) -> Decoders | None:
    """The deserializers that the properties name, Java's names too; None where all is shown as it is.

    What they cannot read is shown as it is, with a note. Raises ConfigError for a name that nobody knows.
    """
    if not any(f"{part}.deserializer" in properties for part in ("key", "value", "headers")):
        return None
    return Decoders(*(_decoder(properties, part) for part in ("key", "value", "headers")))


def _decoder(properties: Mapping[str, str], part: str) -> Decode:
    from kavka.client.serialization import deserializer_of

    name = f"{part}.deserializer"
    settings = {key.removeprefix(f"{name}."): value for key, value in properties.items() if key.startswith(f"{name}.")}
    made: Any = deserializer_of(properties.get(name), name, settings, is_key=part == "key")
    if made is None:
        return lambda _record, data: data

    def decode(record: ShownRecord, data: bytes) -> bytes:
        try:
            return str(made.deserialize(record.topic, record.headers, data)).encode()
        except Exception as error:  # noqa: BLE001  # a deserializer of the user's may raise anything
            return b"%s (%s: %s)" % (data, name.encode(), " ".join(str(error).split()).encode())

    return decode
