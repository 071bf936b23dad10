"""The slow, obvious codec: it walks a layout field by field. The compiled one must do the same; tests compare.

Read this one to see what a message looks like on the wire.
"""

import struct
from typing import Any, TypeVar

from kavka.protocol.errors import DecodeError, EncodeError
from kavka.protocol.layout import (
    FIXED_FORMATS,
    FIXED_SIZES,
    MAX_ELEMENTS,
    MAX_STRING_BYTES,
    FieldLayout,
    StructLayout,
    layout_of,
)
from kavka.protocol.schema import Buffer, Message
from kavka.protocol.varint import read_varint, varint_bytes

M = TypeVar("M", bound=Message)


def decode(
    cls: type[M],
    version: int,
    data: Buffer,
    position: int = 0,
    *,
    max_elements: int = MAX_ELEMENTS,
    trailing: bool = False,
) -> M:
    """The message at `position`. Raises DecodeError for anything wrong, also for bytes behind it unless `trailing`."""
    layout = layout_of(cls, version)
    reader = _Reader(memoryview(data), position, max_elements)
    try:
        message: M = reader.struct(layout)
    except (IndexError, struct.error) as problem:
        raise DecodeError(f"{layout.title}: cut short at byte {len(data)}") from problem
    except UnicodeDecodeError as problem:
        raise DecodeError(f"{layout.title}: a string is not UTF-8") from problem
    if reader.position != len(data) and not trailing:
        raise DecodeError(f"{layout.title}: {len(data) - reader.position} bytes too many")
    return message


def encode(message: Message, version: int) -> bytes:
    """The message's bytes. Raises EncodeError if it can't be written in this version."""
    layout = layout_of(type(message), version)
    out = bytearray()
    try:
        _write_struct(out, layout, message)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as problem:
        raise EncodeError(f"{layout.title}: {problem}") from problem
    return bytes(out)


class _Reader:
    """Where the decoder stands. `budget` is how many more objects the message may bring."""

    def __init__(self, data: memoryview, position: int, budget: int) -> None:
        self.data = data
        self.position = position
        self.budget = budget

    def struct(self, layout: StructLayout) -> Any:
        value = object.__new__(layout.schema.cls)
        for unset in (*layout.absent, *(tagged.field for tagged in layout.tagged)):
            setattr(value, unset.name, unset.fresh_default())
        for field in layout.regular:
            setattr(value, field.name, self.field(layout, field))
        value.unknown_tagged_fields = self.tagged_fields(layout, value) if layout.flexible else ()
        return value

    def tagged_fields(self, layout: StructLayout, value: Message) -> tuple[tuple[int, bytes], ...]:
        known = {field.tag: field for field in layout.tagged}
        unknown = []
        count = self.varint()
        self.spend(count, layout)
        for _ in range(count):
            tag = self.varint()
            size = self.varint()
            end = self.position + size
            if end > len(self.data):
                raise DecodeError(f"{layout.title}: tagged field {tag} goes beyond the data")
            if tag in known:
                setattr(value, known[tag].name, self.field(layout, known[tag]))
                if self.position != end:
                    raise DecodeError(f"{layout.title}: {known[tag].name} is not as long as its tag says")
            else:
                unknown.append((tag, self.take(size).tobytes()))
        return tuple(unknown)

    def field(self, layout: StructLayout, field: FieldLayout) -> Any:
        if field.kind in FIXED_FORMATS:
            return self.fixed(field.kind)
        if field.kind == "struct" and field.layout is not None:
            # Kafka marks a struct in the tagged section with 0 for null, elsewhere with -1.
            if field.nullable and self.fixed("int8") < (0 if field.tag is None else 1):
                return None
            return self.struct(field.layout)
        length = self.length(field.kind, layout.flexible)
        if length < 0:
            if not field.nullable:
                raise DecodeError(f"{layout.title}: {field.name} is null")
            return None
        if field.kind == "array":
            return self.array(layout, field, length)
        return self.content(field.kind, length)

    def array(self, layout: StructLayout, field: FieldLayout, count: int) -> list[Any]:
        if count * field.min_element_size_bytes(layout.flexible) > len(self.data) - self.position:
            raise DecodeError(f"{layout.title}: {field.name} claims {count} elements, more than the data can hold")
        if field.layout is not None:
            self.spend(count, layout)
            return [self.struct(field.layout) for _ in range(count)]
        element = field.element or ""
        if element in FIXED_FORMATS:
            return [self.fixed(element) for _ in range(count)]
        self.spend(count, layout)
        return [self.element(layout, field, element) for _ in range(count)]

    def element(self, layout: StructLayout, field: FieldLayout, kind: str) -> Any:
        length = self.length(kind, layout.flexible)
        if length < 0:
            raise DecodeError(f"{layout.title}: an element of {field.name} is null")
        return self.content(kind, length)

    def content(self, kind: str, length: int) -> Any:
        if kind == "string" and length > MAX_STRING_BYTES:
            raise DecodeError(f"a string of {length} bytes is too long")
        content = self.take(length)
        if kind == "string":
            return content.tobytes().decode()
        return content if kind == "records" else content.tobytes()

    def length(self, kind: str, flexible: bool) -> int:
        """Negative for null."""
        if flexible:
            return self.varint() - 1
        length: int = self.fixed("int16" if kind == "string" else "int32")
        return length

    def fixed(self, kind: str) -> Any:
        (value,) = struct.unpack_from(">" + FIXED_FORMATS[kind], self.data, self.position)
        self.position += FIXED_SIZES[kind]
        return value

    def varint(self) -> int:
        value, self.position = read_varint(self.data, self.position)
        return value

    def take(self, size: int) -> memoryview:
        end = self.position + size
        if end > len(self.data):
            raise DecodeError(f"a length of {size} bytes goes beyond the data")
        content = self.data[self.position : end]
        self.position = end
        return content

    def spend(self, count: int, layout: StructLayout) -> None:
        self.budget -= count
        if self.budget < 0:
            raise DecodeError(f"{layout.title}: more elements than one message may have")


def _write_struct(out: bytearray, layout: StructLayout, value: Message) -> None:
    check_absent(layout, value)
    for field in layout.regular:
        _write_field(out, layout, field, getattr(value, field.name))
    if layout.flexible:
        _write_tagged_fields(out, layout, value)


def check_absent(layout: StructLayout, value: Message) -> None:
    """Raises EncodeError if the value says something that the version has no place for."""
    for field in layout.absent:
        if not field.ignorable and not field.is_default(getattr(value, field.name)):
            raise EncodeError(f"{layout.title} has no {field.name}, which is {getattr(value, field.name)!r}")
    if value.unknown_tagged_fields and not layout.flexible:
        raise EncodeError(f"{layout.title} has no tagged fields, but some are set")


def _write_tagged_fields(out: bytearray, layout: StructLayout, value: Message) -> None:
    tagged = []
    for field in layout.tagged:
        content = getattr(value, field.name)
        if not field.field.is_default(content):
            encoded = bytearray()
            _write_field(encoded, layout, field, content)
            tagged.append((field.tag or 0, bytes(encoded)))
    out += tagged_fields_bytes(tagged, value.unknown_tagged_fields)


def tagged_fields_bytes(known: list[tuple[int, bytes]], unknown: tuple[tuple[int, bytes], ...]) -> bytes:
    """The tagged section, in order of tags. Raises EncodeError if an unknown field has a known one's tag."""
    taken = {tag for tag, _ in known}
    if any(tag in taken for tag, _ in unknown):
        raise EncodeError(f"a tag is used twice: {sorted(tag for tag, _ in unknown if tag in taken)}")
    fields = sorted((*known, *unknown), key=lambda field: field[0])
    parts = [varint_bytes(len(fields))]
    for tag, content in fields:
        parts += varint_bytes(tag), varint_bytes(len(content)), content
    return b"".join(parts)


def _write_field(out: bytearray, layout: StructLayout, field: FieldLayout, value: Any) -> None:
    if field.kind in FIXED_FORMATS:
        out += _fixed(field.kind, value)
    elif field.kind == "struct" and field.layout is not None:
        if field.nullable:
            out += _fixed("int8", -1 if value is None else 1)
        if value is not None:
            _write_struct(out, field.layout, value)
        elif not field.nullable:
            raise EncodeError(f"{layout.title}: {field.name} is None")
    elif value is None:
        if not field.nullable:
            raise EncodeError(f"{layout.title}: {field.name} is None")
        out += _length(field.kind, None, layout.flexible)
    elif field.kind == "array":
        out += _length(field.kind, len(value), layout.flexible)
        for element in value:
            if field.layout is not None:
                _write_struct(out, field.layout, element)
            elif field.element in FIXED_FORMATS:
                out += _fixed(field.element or "", element)
            else:
                _write_content(out, field.element or "", element, layout.flexible)
    else:
        _write_content(out, field.kind, value, layout.flexible)


def _write_content(out: bytearray, kind: str, value: Any, flexible: bool) -> None:
    content = value.encode() if kind == "string" else memoryview(value)
    if kind == "string" and len(content) > MAX_STRING_BYTES:
        raise EncodeError(f"a string of {len(content)} bytes is too long")
    out += _length(kind, len(content), flexible)
    out += content


def _length(kind: str, length: int | None, flexible: bool) -> bytes:
    if flexible:
        return varint_bytes(0 if length is None else length + 1)
    return struct.pack(">h" if kind == "string" else ">i", -1 if length is None else length)


def _fixed(kind: str, value: Any) -> bytes:
    if kind == "uuid" and len(value) != 16:
        raise EncodeError(f"a UUID has 16 bytes, not {len(value)}")
    return struct.pack(">" + FIXED_FORMATS[kind], value)
