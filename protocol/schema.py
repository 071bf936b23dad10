"""How a message is declared: one class for all versions, its fields as annotations.

    class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: NullableString = since(3, default=None)

A field without `since` is in every version of what it stands in. Without a default it starts as its type's zero (0, "",
b"", False, the zero UUID, an empty list, a struct of defaults): `__init__` fills it in, but mypy asks for it, so that
nobody forgets a partition index. A plain default (`= -1`) is shorthand for `since(0, default=-1)`. Nothing is parsed or
compiled until a class is first instantiated, encoded or decoded: start-up imports dozens of these modules.

Instances are plain objects with an inline attribute dictionary that holds all fields, those of other versions at their
defaults, and `unknown_tagged_fields`. They belong to whoever made or decoded them; there are no locks.
"""

from __future__ import annotations

import base64
import threading
import types
import typing
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, dataclass_transform

ZERO_UUID: Final = bytes(16)
NEVER: Final = 32_767
"""A version above all versions: a message with `flexible=None` is flexible from here on."""


class RecordsPart(Protocol):
    """What `encode_parts` takes for record bytes that are not in memory, such as a slice of a segment file."""

    @property
    def size_bytes(self) -> int: ...


Buffer: TypeAlias = bytes | bytearray | memoryview

Bool: TypeAlias = Annotated[bool, "bool"]
Int8: TypeAlias = Annotated[int, "int8"]
Int16: TypeAlias = Annotated[int, "int16"]
Uint16: TypeAlias = Annotated[int, "uint16"]
Int32: TypeAlias = Annotated[int, "int32"]
Int64: TypeAlias = Annotated[int, "int64"]
Float64: TypeAlias = Annotated[float, "float64"]
Uuid: TypeAlias = Annotated[bytes, "uuid"]
String: TypeAlias = Annotated[str, "string"]
NullableString: TypeAlias = Annotated[str | None, "string?"]
Bytes: TypeAlias = Annotated[bytes, "bytes"]
NullableBytes: TypeAlias = Annotated[bytes | None, "bytes?"]
# Records decode to a memoryview of the input; a bytes-like or, for encode_parts, a RecordsPart encodes.
Records: TypeAlias = Annotated[Any, "records"]
NullableRecords: TypeAlias = Annotated[Any, "records?"]

_SECRETS: Final = frozenset({"auth_bytes", "hmac", "salted_password"})
_UNSET: Final = type("_Unset", (), {"__repr__": lambda _: "<unset>"})()


class _Since(NamedTuple):
    first: int
    until: int | None
    default: Any
    tag: int | None
    nullable_since: int | None
    ignorable: bool


def since(
    first: int,
    until: int | None = None,
    *,
    default: Any = _UNSET,
    tag: int | None = None,
    nullable_since: int | None = None,
    ignorable: bool = False,
) -> Any:
    """The versions in which a field exists, from `first` up to and including `until`.

    `tag`: the field is tagged (KIP-482); all its versions must be flexible. `nullable_since`: before that version null
    is an error (by default a nullable field is nullable in all its versions). `ignorable`: a value other than the
    default is silently dropped from a version without the field; otherwise that is an EncodeError.
    """
    return _Since(first, until, default, tag, nullable_since, ignorable)


class Field:
    """One field over all versions.

    `kind` is a wire type's name, "struct" or "array"; `element` is the kind of an array's elements; `struct` is the
    class of a struct or of an array's structs. Read-only.
    """

    __slots__ = (
        "default",
        "element",
        "first",
        "ignorable",
        "kind",
        "last",
        "name",
        "nullable",
        "nullable_since",
        "struct",
        "tag",
    )

    def __init__(self, name: str, annotation: Any, declared: Any) -> None:
        spec = declared if type(declared) is _Since else _Since(0, None, declared, None, None, False)
        self.name = name
        self.kind, self.nullable, self.element, self.struct = _parse_annotation(annotation)
        self.first = spec.first
        self.last = NEVER if spec.until is None else spec.until
        self.nullable_since = (spec.nullable_since or 0) if self.nullable else NEVER
        self.tag = spec.tag
        self.ignorable = spec.ignorable
        self.default = spec.default
        if spec.default is _UNSET:
            self.default = shared_default(self.struct) if self.kind == "struct" else _ZEROS.get(self.kind, 0)

    def exists_in(self, version: int) -> bool:
        return self.first <= version <= self.last

    def fresh_default(self) -> Any:
        """A default that its owner may change: lists, and structs that hold lists, are new each time."""
        if self.kind == "array" and self.default is not None:
            return []
        if self.kind == "struct" and self.default is None and self.struct is not None and not self.nullable:
            return self.struct()
        return self.default

    def is_default(self, value: Any) -> bool:
        return bool(value == self.fresh_default())


class Schema:
    """What a class declares, parsed. `first` and `last` bound the versions, `flexible_since` is NEVER for none."""

    __slots__ = ("cls", "fields", "first", "flexible_since", "key", "last", "name")

    def __init__(self, cls: type[Message], key: int | None, versions: str, flexible: str | None) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.key = key
        low, _, high = versions.removesuffix("+").partition("-")
        self.first = int(low)
        self.last = int(high) if high else (NEVER if versions.endswith("+") else self.first)
        self.flexible_since = NEVER if flexible is None else int(flexible.removesuffix("+"))
        annotations = cls.__annotations__
        self.fields = tuple(Field(name, annotations[name], default) for name, default in cls.__declared__.items())


@dataclass_transform(kw_only_default=True)
class Message:
    """A message, struct or stored record of the protocol. Compares by its fields; not hashable."""

    unknown_tagged_fields: tuple[tuple[int, bytes], ...]
    """Tagged fields that no declaration knows, as they came; written back when encoded."""

    __declared__: ClassVar[dict[str, Any]] = {}
    __parameters__: ClassVar[tuple[int | None, str, str | None]] = (None, "0+", None)
    __schema__: ClassVar[Schema | None] = None
    __hash__ = None  # type: ignore[assignment]  # values are mutable and compared by content

    def __init_subclass__(cls, *, key: int | None = None, versions: str = "0+", flexible: str | None = None) -> None:
        own = vars(cls)
        cls.__declared__ = {name: own.get(name, _UNSET) for name in own.get("__annotations__", ())}
        cls.__parameters__ = (key, versions, flexible)
        cls.__schema__ = None
        for name, default in cls.__declared__.items():
            if default is not _UNSET:
                delattr(cls, name)

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        initializer = _compile_initializer(schema_of(cls))
        setattr(cls, "__init__", initializer)  # noqa: B010  # mypy refuses the assignment of a method
        initializer(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or schema_of(type(self)) is not schema_of(type(other)):
            return NotImplemented
        return bool(self.__dict__ == other.__dict__)

    def __repr__(self) -> str:
        schema = schema_of(type(self))
        shown = ", ".join(f"{field.name}={self._shown(field.name)}" for field in schema.fields)
        unknown = self.unknown_tagged_fields
        return f"{schema.name}({shown}{f', unknown_tagged_fields={unknown!r}' if unknown else ''})"

    def _shown(self, name: str) -> str:
        """A field's value, for logs and errors: what proves who somebody is shows its size alone."""
        value = getattr(self, name, _UNSET)
        return f"[{len(value)} bytes, hidden]" if name in _SECRETS and value else repr(value)


class Request(Message):
    """What a client sends: header apart, `key` says which API."""


class Response(Message):
    """What a broker answers."""


class Struct(Message):
    """A part of a message; its versions and flexibility are those of the message that it is in."""


class Record(Message):
    """A key or value that an internal topic stores, behind its version as an int16."""


def schema_of(cls: type[Message]) -> Schema:
    """The parsed declaration of a class, parsed on first use by whichever thread comes first."""
    schema = cls.__schema__
    if schema is None:
        with _PARSING:
            schema = cls.__schema__
            if schema is None:
                schema = cls.__schema__ = Schema(cls, *cls.__parameters__)
    return schema


def shared_default(struct: type[Message] | None) -> Message | None:
    """The one read-only instance that stands for an unset struct, or None for a struct that holds lists."""
    if struct is None:
        return None
    schema = schema_of(struct)
    if any(field.fresh_default() is not field.default for field in schema.fields):
        return None
    read_only = _READ_ONLY.get(struct)
    if read_only is None:
        attributes = {"__setattr__": _refuse_change, "__slots__": ()}
        frozen: type[Message] = type(schema.name, (struct,), attributes)
        frozen.__schema__ = schema
        read_only = object.__new__(frozen)
        read_only.__dict__.update(struct().__dict__)
        _READ_ONLY[struct] = read_only
    return read_only


_READ_ONLY: Final[dict[type[Message], Message]] = {}
_PARSING: Final = threading.RLock()  # a schema is compared by identity, and parsing one parses those of its structs


def uuid_to_text(value: bytes) -> str:
    """Kafka's text form of a UUID: URL-safe base64 of the 16 bytes without padding, 22 characters."""
    return base64.urlsafe_b64encode(value).decode()[:22]


def text_to_uuid(text: str) -> bytes:
    """The 16 bytes of Kafka's text form. Raises ValueError for anything else."""
    if len(text) != 22:
        raise ValueError(f"a UUID has 22 characters in base64, not {len(text)}: {text!r}")
    value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(value) != 16:
        raise ValueError(f"not a UUID: {text!r}")
    return value


_ZEROS: Final[dict[str, Any]] = {
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": b"",
    "array": (),
}


def _refuse_change(self: Message, name: str, value: object) -> None:
    raise AttributeError(f"the default {type(self).__name__} is shared; make one of your own to set {name}")


def _parse_annotation(annotation: Any) -> tuple[str, bool, str | None, type[Message] | None]:
    """(kind, nullable, element kind, struct class)"""
    if hasattr(annotation, "__metadata__"):
        kind: str = annotation.__metadata__[0]
        return kind.removesuffix("?"), kind.endswith("?"), None, None
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        (inner,) = (part for part in typing.get_args(annotation) if part is not type(None))
        kind, _, element, struct = _parse_annotation(inner)
        return kind, True, element, struct
    if typing.get_origin(annotation) is list:
        kind, nullable, _, struct = _parse_annotation(typing.get_args(annotation)[0])
        if nullable:
            raise TypeError(f"the protocol has no arrays of nullable elements: {annotation}")
        return "array", False, kind, struct
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return "struct", False, None, annotation
    raise TypeError(f"not a type of the protocol: {annotation!r}")


def _compile_initializer(schema: Schema) -> Any:
    """`__init__` with a keyword per field, as flat as if written by hand."""
    names: dict[str, Any] = {"UNSET": _UNSET, "FIELDS": schema.fields}
    parameters, lines = [], []
    for index, field in enumerate(schema.fields):
        names[f"default_{index}"] = field.default
        fresh = field.fresh_default() is not field.default
        parameters.append(f"{field.name}=UNSET" if fresh else f"{field.name}=default_{index}")
        value = f"FIELDS[{index}].fresh_default() if {field.name} is UNSET else {field.name}" if fresh else field.name
        lines.append(f"    self.{field.name} = {value}")
    head = ", ".join(["self", "*", *parameters, "unknown_tagged_fields=()"])
    lines.append("    self.unknown_tagged_fields = unknown_tagged_fields")
    exec("\n".join([f"def __init__({head}):", *lines]), names)
    return names["__init__"]
