"""One version of a declaration: which fields are there, in which order, and how small it can be on the wire.

Both codecs work from this: the interpreter walks it for every message, the compiler once for each (class, version).
"""

from typing import Final

from kavka.protocol.schema import Field, Message, Schema, schema_of

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""`struct` formats of the kinds that always take the same room."""

FIXED_SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}

MAX_STRING_BYTES: Final = 0x7FFF
MAX_ELEMENTS: Final = 1_000_000
"""Default budget of structs, strings and unknown tagged fields in one message. As an object each takes up to a hundred
times its room on the wire, so the size of a request alone bounds too little."""


class FieldLayout:
    """A field as one version has it. `layout` is that of a struct, or of an array's structs. Read-only."""

    __slots__ = ("element", "field", "kind", "layout", "name", "nullable", "tag")

    def __init__(self, field: Field, version: int, flexible: bool) -> None:
        self.field = field
        self.name = field.name
        self.kind = field.kind
        self.element = field.element
        self.nullable = version >= field.nullable_since
        self.tag = field.tag
        self.layout = None if field.struct is None else StructLayout(schema_of(field.struct), version, flexible)

    def min_size_bytes(self, flexible: bool) -> int:
        if self.kind == "struct" and self.layout is not None:
            return 1 if self.nullable else self.layout.min_size_bytes
        return _min_size_bytes(self.kind, flexible)

    def min_element_size_bytes(self, flexible: bool) -> int:
        """At least 1, so that a count is always bounded by the bytes that are left."""
        if self.layout is not None:
            return max(1, self.layout.min_size_bytes)
        return _min_size_bytes(self.element or "", flexible)


class StructLayout:
    """A message or struct in one version: fields in order, tagged ones by tag, and those that it lacks. Read-only."""

    __slots__ = ("absent", "flexible", "min_size_bytes", "regular", "schema", "tagged", "title", "version")

    def __init__(self, schema: Schema, version: int, flexible: bool) -> None:
        self.schema = schema
        self.version = version
        self.flexible = flexible
        self.title = f"{schema.name} v{version}"
        present = [FieldLayout(field, version, flexible) for field in schema.fields if field.exists_in(version)]
        self.regular = [field for field in present if field.tag is None]
        self.tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
        self.absent = [field for field in schema.fields if not field.exists_in(version)]
        self.min_size_bytes = sum(field.min_size_bytes(flexible) for field in self.regular) + flexible


def layout_of(cls: type[Message], version: int) -> StructLayout:
    """The layout of a message. Raises ValueError for a version that the class doesn't have."""
    layout = _LAYOUTS.get((cls, version))
    if layout is None:
        schema = schema_of(cls)
        if not schema.first <= version <= schema.last:
            raise ValueError(f"{schema.name} has versions {schema.first} to {schema.last}, not {version}")
        layout = _LAYOUTS[cls, version] = StructLayout(schema, version, version >= schema.flexible_since)
    return layout


_LAYOUTS: Final[dict[tuple[type[Message], int], StructLayout]] = {}


def _min_size_bytes(kind: str, flexible: bool) -> int:
    if kind in FIXED_SIZES:
        return FIXED_SIZES[kind]
    if flexible:
        return 1
    return 2 if kind == "string" else 4
