"""Values to bytes and back, by class, object, function and name."""

import json
import uuid
from typing import Any

import pytest

from kavka.client.serialization import Json, Text, deserializer_of, serializer_of
from kavka.config.errors import ConfigError

JAVA = "org.apache.kafka.common.serialization."


def both_ways(serializer: Any, deserializer: Any, value: Any, **settings: Any) -> tuple[bytes | None, Any]:
    there = serializer_of(serializer, "value.serializer", settings, is_key=False)
    back = deserializer_of(deserializer, "value.deserializer", settings, is_key=False)
    data = value if there is None else there.serialize("birds", (), value)
    return data, data if back is None else back.deserialize("birds", (), data)


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("ByteArray", b"\0\1", b"\0\1"),
        ("String", "čáp", "čáp".encode()),
        ("Integer", -2, b"\xff\xff\xff\xfe"),
        ("Long", 258, b"\0\0\0\0\0\0\1\2"),
        ("Short", 258, b"\1\2"),
        ("Double", 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        ("Float", 1.0, b"\x3f\x80\0\0"),
        ("Boolean", True, b"\1"),
        ("UUID", uuid.UUID(int=7), b"00000000-0000-0000-0000-000000000007"),
        ("Void", None, None),
    ],
)
def test_javas_classes_have_twins(name: str, value: Any, data: bytes | None) -> None:
    assert both_ways(f"{JAVA}{name}Serializer", f"{JAVA}{name}Deserializer", value) == (data, value)


@pytest.mark.parametrize("name", ["String", "Integer", "UUID"])
def test_null_stays_null(name: str) -> None:
    assert both_ways(f"{JAVA}{name}Serializer", f"{JAVA}{name}Deserializer", None) == (None, None)


def test_the_old_encoders_are_understood() -> None:
    encoder = serializer_of(
        "kafka.serializer.StringEncoder", "serializer.class", {"serializer.encoding": "latin-1"}, is_key=False
    )
    assert encoder is not None
    assert encoder.serialize("birds", (), "é") == b"\xe9"
    assert serializer_of("kafka.serializer.DefaultEncoder", "serializer.class", {}, is_key=False) is None


def test_encodings_differ_for_key_and_value() -> None:
    settings = {"key.serializer.encoding": "utf-16-le", "serializer.encoding": "latin-1"}
    key, value = (serializer_of(Text, "x", settings, is_key=is_key) for is_key in (True, False))
    assert key is not None
    assert value is not None
    assert (key.serialize("", (), "é"), value.serialize("", (), "é")) == (b"\xe9\0", b"\xe9")


def test_functions_classes_objects_and_names_will_do() -> None:
    assert both_ways(lambda value: json.dumps(value).encode(), json.loads, [1]) == (b"[1]", [1])
    assert both_ways(Json, Json(), {"a": "č"}) == ('{"a":"č"}'.encode(), {"a": "č"})
    assert both_ways("kavka.client.serialization.Json", "kavka.client.serialization:Json", [1]) == (b"[1]", [1])


@pytest.mark.parametrize("setting", ["no.such.module.Class", "kavka.client.serialization.NoClass", "Nothing", 7])
def test_what_cannot_be_is_refused_by_name(setting: Any) -> None:
    with pytest.raises(ConfigError, match=r"value\.serializer"):
        serializer_of(setting, "value.serializer", {}, is_key=False)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"serializer\.encoding"):
        serializer_of(Text, "value.serializer", {"serializer.encoding": "klingon"}, is_key=False)


def test_a_class_is_configured_once_with_all_settings() -> None:
    seen = []

    class Nosy:
        def configure(self, settings: dict[str, Any], is_key: bool) -> None:
            seen.append((settings["x"], is_key))

        def serialize(self, topic: str, headers: Any, value: Any) -> bytes:
            return b""

    serializer_of(Nosy, "key.serializer", {"x": 1}, is_key=True)
    assert seen == [(1, True)]
