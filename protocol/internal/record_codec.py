"""How internal topics frame what they store.

    key      0..1  type     i16; which record it is (`GROUP_RECORDS`, `TRANSACTION_RECORDS`)
             2..   body     the key class's version 0
    value    0..1  version  i16; of the body
             2..   body     the value class in that version

A record without a value is a tombstone. Bytes behind a body are left unread, as Kafka leaves them.
"""

import struct
from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import DecodeError
from kavka.protocol.schema import Buffer, Record, schema_of

R = TypeVar("R", bound=Record)
RecordTypes: TypeAlias = Mapping[int, tuple[type[Record], type[Record]]]
"""An internal topic's records: type -> (key class, value class)."""


class UnknownRecordTypeError(DecodeError):
    """A key of a type that is not in the table: written by a later Kafka, to be left alone."""


def encode_key(key: Record) -> bytes:
    """The key as stored, behind the type that its class was declared with."""
    number = schema_of(type(key)).key
    assert number is not None, f"{type(key).__name__} is no key of an internal topic"
    return _I16.pack(number) + encode(key, 0)


def encode_value(value: Record, version: int) -> bytes:
    """The value as stored. Raises EncodeError for what that version cannot say."""
    return _I16.pack(version) + encode(value, version)


def decode_key(types: RecordTypes, data: Buffer) -> tuple[Record, type[Record]]:
    """The key and the class of its value. Raises UnknownRecordTypeError, and DecodeError for bytes that are no key."""
    number = _number(data)
    classes = types.get(number)
    if classes is None:
        raise UnknownRecordTypeError(f"key of unknown type {number}")
    return decode(classes[0], 0, data, _I16.size, trailing=True), classes[1]


def decode_value(cls: type[R], data: Buffer) -> tuple[R, int]:
    """The value and its version. Raises DecodeError for bytes that are no value, also for a version yet unknown."""
    version = _number(data)
    schema = schema_of(cls)
    if not schema.first <= version <= schema.last:
        raise DecodeError(f"{cls.__name__} of version {version}, known are {schema.first} to {schema.last}")
    return decode(cls, version, data, _I16.size, trailing=True), version


def _number(data: Buffer) -> int:
    if len(data) < _I16.size:
        raise DecodeError(f"{len(data)} bytes are too few for a record of an internal topic")
    (number,) = _I16.unpack_from(data)
    return int(number)


_I16: Final = struct.Struct(">h")
