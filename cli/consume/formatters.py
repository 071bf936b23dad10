"""Which of the formats shows a record: `--format`, `--output json`, `--formatter`, or what the topic asks for."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kavka.cli.consume import json_format, kcat_format, plain_format
from kavka.cli.consume.shown_record import ShownRecord

Show = Callable[[ShownRecord], bytes]
"""The bytes of a record, its line's end too; empty for one that is not to be shown."""

_TOOLS: Final = "org.apache.kafka.tools.consumer."
_OFFSETS: Final = ("__consumer_offsets", frozenset({0, 1}))
_GROUPS: Final = ("__consumer_offsets", frozenset({2}))
_TRANSACTIONS: Final = ("__transaction_state", frozenset({0}))
_SHARE_STATE: Final = ("__share_group_state", frozenset({0, 1}))
INTERNAL_FORMATTERS: Final[Mapping[str, tuple[str, frozenset[int]]]] = {
    "offsets": _OFFSETS,
    "group-metadata": _GROUPS,
    "transactions": _TRANSACTIONS,
    "share-state": _SHARE_STATE,
    f"{_TOOLS}OffsetsMessageFormatter": _OFFSETS,
    f"{_TOOLS}GroupMetadataMessageFormatter": _GROUPS,
    f"{_TOOLS}TransactionLogMessageFormatter": _TRANSACTIONS,
    f"{_TOOLS}group.share.ShareGroupStateMessageFormatter": _SHARE_STATE,
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter": _OFFSETS,
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter": _GROUPS,
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter": _TRANSACTIONS,
}
"""What Kafka's tool has for internal topics, by its names and by short ones: the topic and the types of its records."""
_PLAIN: Final = frozenset({"default", f"{_TOOLS}DefaultMessageFormatter", "kafka.tools.DefaultMessageFormatter"})
_LOGGING: Final = frozenset({f"{_TOOLS}LoggingMessageFormatter", "kafka.tools.LoggingMessageFormatter"})
_NO_OP: Final = frozenset({"none", f"{_TOOLS}NoOpMessageFormatter", "kafka.tools.NoOpMessageFormatter"})


class Wanted(NamedTuple):
    """What the command line says about how records are shown."""

    pattern: str | None = None
    """kcat's, of `--format`."""
    as_json: bool = False
    formatter: str | None = None
    properties: Mapping[str, str] = {}
    raw_internal: bool = False
    """Internal topics as any other."""


def formatter_of(wanted: Wanted, escape: Callable[[bytes], bytes]) -> Show:
    """What shows records. `escape` is called with what comes from them, unless it is escaped anyway.

    Raises ValueError for a pattern, a name or a property that cannot be; ConfigError for a deserializer's.
    """
    if wanted.pattern is not None:
        return kcat_format.compiled(wanted.pattern, escape)
    if wanted.formatter is not None and wanted.formatter in INTERNAL_FORMATTERS:
        return _kafka_json(*INTERNAL_FORMATTERS[wanted.formatter])
    if wanted.formatter in _NO_OP:
        return lambda _record: b""
    if wanted.as_json:
        return _automatic(json_format.json_line, _words_in_json, wanted.raw_internal)
    if wanted.formatter is not None and wanted.formatter not in _PLAIN and wanted.formatter not in _LOGGING:
        known = ", ".join(name for name in INTERNAL_FORMATTERS if "." not in name)
        raise ValueError(f"there is no formatter {wanted.formatter}; there are default, none, {known}")
    plain = plain_format.PlainFormat(wanted.properties, escape, plain_format.decoders_of(wanted.properties))
    return _automatic(plain, _words(escape), wanted.raw_internal or wanted.formatter is not None)


def _automatic(plain: Show, internal: Show, is_raw: bool) -> Show:
    if is_raw:
        return plain

    def show(record: ShownRecord) -> bytes:
        return internal(record) if record.topic in INTERNAL_TOPICS else plain(record)

    return show


INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def _words(escape: Callable[[bytes], bytes]) -> Show:
    from kavka.cli.consume.internal_topics import InternalRecord

    def show(record: ShownRecord) -> bytes:
        return escape(InternalRecord(record.topic, record.key, record.value).words().encode()) + b"\n"

    return show


def _words_in_json(record: ShownRecord) -> bytes:
    from kavka.cli.consume.internal_topics import InternalRecord

    decoded = InternalRecord(record.topic, record.key, record.value)
    return json_format.line_of(record, decoded.as_kafka())


def _kafka_json(topic: str, types: frozenset[int]) -> Show:
    """As Kafka's formatters: a record without a key, or of another type, is not shown."""
    from kavka.cli.consume.internal_topics import InternalRecord, kafka_json

    def show(record: ShownRecord) -> bytes:
        if record.key is None:
            return b""
        decoded = InternalRecord(topic, record.key, record.value)
        if decoded.type is not None and decoded.type not in types:
            return b""
        return kafka_json(decoded).encode() + b"\n"

    return show
