"""Values to bytes and back, by Kafka's contract: `configure`, `serialize` or `deserialize`, `close`.

    class Celsius:
        def serialize(self, topic, headers, value):
            return None if value is None else str(value).encode()

        def deserialize(self, topic, headers, data):
            return None if data is None else float(data)

    Producer(bootstrap_servers="localhost:9092", value_serializer=Celsius)

A setting takes a class, an object, a function of the value (or the bytes) alone, a dotted name of one of these, or the
name of a class of Java's client that has a twin here. What has no `configure` or `close` needs none.
"""

import codecs
import json
import logging
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from kavka.client.kafka_error import KafkaError
from kavka.config.errors import ConfigError

log = logging.getLogger(__name__)

Headers = Sequence[tuple[str, bytes | None]]


class SerializationError(KafkaError):
    """A serializer or deserializer failed, or what came out is no bytes; the cause is its own error."""


class Serializer(Protocol):
    """Makes bytes of values. Called by the threads that send.

    class Celsius:
        def serialize(self, topic, headers, value):
            return None if value is None else str(value).encode()

    with Producer(bootstrap_servers="localhost:9092", value_serializer=Celsius) as producer:
        producer.send("temperatures", 21.5)
    """

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes | None:
        """The bytes of a key or value; None for null."""


class Deserializer(Protocol):
    """Makes values of bytes. Called by the thread that polls.

    class Celsius:
        def deserialize(self, topic, headers, data):
            return None if data is None else float(data)

    with Consumer(bootstrap_servers="localhost:9092", value_deserializer=Celsius) as consumer:
        consumer.assign([("temperatures", 0)])
    """

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """The key or value; None for null, as a rule."""


class Bytes:
    """Bytes as they are: what is used when no serializer is given."""

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes | None:
        """The value, which is bytes-like or None. Raises TypeError."""
        return as_bytes(value)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        """The bytes."""
        return data


class Text:
    """Strings, in UTF-8 or another encoding: `key.serializer.encoding`, `serializer.encoding` and their like."""

    def __init__(self, encoding: str = "utf-8") -> None:
        """Raises LookupError for an encoding that Python does not know."""
        self._encoding = codecs.lookup(encoding).name

    def configure(self, settings: Mapping[str, Any], is_key: bool) -> None:
        """Take the encoding from the settings. Raises ConfigError."""
        part = "key" if is_key else "value"
        names = [f"{part}.serializer.encoding", f"{part}.deserializer.encoding"]
        for name in [*names, "serializer.encoding", "deserializer.encoding"]:
            encoding = settings.get(name, settings.get(name.replace(".", "_")))
            if encoding is not None:
                try:
                    self._encoding = codecs.lookup(str(encoding)).name
                except LookupError:
                    raise ConfigError(name, str(encoding), "Expected an encoding that is known") from None
                return

    def serialize(self, topic: str, headers: Headers, value: str | None) -> bytes | None:
        """The encoded string."""
        return None if value is None else value.encode(self._encoding)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> str | None:
        """The decoded string."""
        return None if data is None else str(data, self._encoding)


class Number:
    """A number of fixed size, big-endian, as Java's client writes it; `format` is struct's."""

    def __init__(self, format: str) -> None:  # noqa: A002  # the word of the struct module, whose formats these are
        self._struct: Final = struct.Struct(format)

    def serialize(self, topic: str, headers: Headers, value: float | None) -> bytes | None:
        """The number's bytes. Raises struct.error for what does not fit."""
        return None if value is None else self._struct.pack(value)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """The number. Raises struct.error for another number of bytes."""
        return None if data is None else self._struct.unpack(data)[0]


class Uuid:
    """UUIDs, as the text of 36 characters that Java's client writes."""

    def serialize(self, topic: str, headers: Headers, value: uuid.UUID | None) -> bytes | None:
        """The UUID's text."""
        return None if value is None else str(value).encode()

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> uuid.UUID | None:
        """The UUID. Raises ValueError."""
        return None if data is None else uuid.UUID(str(data, "utf-8"))


class Json:
    """What JSON can say, in UTF-8, without spaces."""

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes | None:
        """The value's JSON; None is null, a record without a value, rather than the word."""
        return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """What the JSON says."""
        return None if data is None else json.loads(data)


class Void:
    """Nothing but null."""

    def serialize(self, topic: str, headers: Headers, value: None) -> None:
        """Null. Raises ValueError for a value."""
        if value is not None:
            raise ValueError("a value for a serializer of nulls")

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> None:
        """Null. Raises ValueError for bytes."""
        if data is not None:
            raise ValueError("bytes for a deserializer of nulls")


class _Function:
    """A function of the value, or of the bytes, alone. None stays None."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function: Final = function

    def serialize(self, topic: str, headers: Headers, value: Any) -> Any:
        return None if value is None else self._function(value)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        return None if data is None else self._function(data)


_TWINS: Final[Mapping[str, Callable[[], Any]]] = {
    "ByteArray": Bytes,
    "ByteBuffer": Bytes,
    "Bytes": Bytes,
    "String": Text,
    "Short": lambda: Number(">h"),
    "Integer": lambda: Number(">i"),
    "Long": lambda: Number(">q"),
    "Float": lambda: Number(">f"),
    "Double": lambda: Number(">d"),
    "Boolean": lambda: Number(">?"),
    "UUID": Uuid,
    "Void": Void,
}
_JAVA: Final = "org.apache.kafka.common.serialization."
_OLD: Final[Mapping[str, Callable[[], Any]]] = {
    "kafka.serializer.DefaultEncoder": Bytes,
    "kafka.serializer.DefaultDecoder": Bytes,
    "kafka.serializer.StringEncoder": Text,
    "kafka.serializer.StringDecoder": Text,
    "kafka.serializer.NullEncoder": Void,
}


def serializer_of(setting: Any, name: str, settings: Mapping[str, Any], *, is_key: bool) -> Serializer | None:
    """What the setting `name` says, made and configured; None for bytes as they are. Raises ConfigError."""
    found = _made(setting, name, "serialize", "Serializer", settings, is_key)
    return None if found is None or type(found) is Bytes else found


def deserializer_of(setting: Any, name: str, settings: Mapping[str, Any], *, is_key: bool) -> Deserializer | None:
    """What the setting `name` says, made and configured; None for bytes as they are. Raises ConfigError."""
    found = _made(setting, name, "deserialize", "Deserializer", settings, is_key)
    return None if found is None or type(found) is Bytes else found


def close_quietly(made: Any) -> None:
    """Call `close` of something that a setting named, if it has one; what that raises is logged."""
    try:
        if made is not None and hasattr(made, "close"):
            made.close()
    except Exception:
        log.exception("what a setting named could not be closed class='%s'", type(made).__name__)


def as_bytes(value: Any) -> bytes | None:
    """Bytes of something bytes-like. Raises TypeError for anything else: text needs a serializer."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a serializer is needed for {type(value).__name__}, as only bytes are sent as they are")


def named_object(name: str) -> Any:
    """What a dotted name means: `package.module.Name`, or with a colon before the name. Raises ImportError."""
    module_name, _, attribute = name.replace(":", ".").rpartition(".")
    if not module_name:
        raise ImportError(f"{name!r} has no module")
    found: Any = import_module(module_name)
    try:
        return getattr(found, attribute)
    except AttributeError:
        raise ImportError(f"module {module_name!r} has no {attribute!r}") from None


def _made(setting: Any, name: str, method: str, suffix: str, settings: Mapping[str, Any], is_key: bool) -> Any:
    if setting is None:
        return None
    if isinstance(setting, str):
        setting = _named(setting, name, suffix)
    if isinstance(setting, type) or setting in _TWINS.values():
        setting = setting()
    if not hasattr(setting, method):
        if not callable(setting):
            raise ConfigError(name, repr(setting), f"Expected a class, an object with {method}() or a function")
        setting = _Function(setting)
    if hasattr(setting, "configure"):
        setting.configure(settings, is_key)
    return setting


def _named(text: str, name: str, suffix: str) -> Any:
    twin = _OLD.get(text)
    if twin is None and text.startswith(_JAVA) and text.endswith(suffix):
        twin = _TWINS.get(text.removeprefix(_JAVA).removesuffix(suffix))
    if twin is not None:
        return twin
    try:
        return named_object(text)
    except ImportError as error:
        raise ConfigError(name, text, f"Class {text} could not be found: {error}") from None
