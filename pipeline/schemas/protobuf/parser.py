"""`.proto` text to a file descriptor, as protoc would make it: what decoding needs, and no options.

Proto2 and proto3; services and extensions are passed over, groups and editions are refused. Source: the language
specifications at protobuf.dev.
"""

from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from kavka.pipeline.schemas.errors import SchemaUnusableError
from kavka.pipeline.schemas.protobuf.tokens import END, Tokens

_SCALARS: Final = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
        *("sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_MAX_DEPTH: Final = 50


def file_descriptor(name: str, text: str) -> Any:
    """A FileDescriptorProto of that name. Types are called as in the text. Raises SchemaUnusableError."""
    return _Parser(name, Tokens(text)).file


class _Parser:
    def __init__(self, name: str, tokens: Tokens) -> None:
        self._tokens = tokens
        self.file: Any = FileDescriptorProto(name=name)
        self._is_proto3 = False
        if tokens.peek() == "edition":
            raise SchemaUnusableError('editions of Protobuf are not read: say syntax = "proto3" or "proto2"')
        if tokens.skip_if("syntax"):
            tokens.expect("=")
            syntax = tokens.string()
            if syntax not in ("proto2", "proto3"):
                raise SchemaUnusableError(f"there is no syntax {syntax!r}")
            tokens.expect(";")
            self._is_proto3 = syntax == "proto3"
            self.file.syntax = syntax
        while tokens.peek() != END:
            self._top()

    def _top(self) -> None:
        tokens = self._tokens
        word = tokens.take()
        if word == "package":
            self.file.package = tokens.name()
            tokens.expect(";")
        elif word == "import":
            public = tokens.skip_if("public")
            if not public:
                tokens.skip_if("weak")
            if public:
                self.file.public_dependency.append(len(self.file.dependency))
            self.file.dependency.append(tokens.string())
            tokens.expect(";")
        elif word == "message":
            self._message(self.file.message_type.add(), 0)
        elif word == "enum":
            self._enum(self.file.enum_type.add())
        elif word in ("option", "service", "extend"):
            tokens.skip_statement()
        elif word != ";":
            raise SchemaUnusableError(f"the .proto text has {word!r} where a message or enum belongs")

    def _message(self, message: Any, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise SchemaUnusableError("messages lie in one another too deep")
        tokens = self._tokens
        message.name = tokens.name()
        tokens.expect("{")
        while not tokens.skip_if("}"):
            # These are names of types as well: what follows them tells.
            is_field = tokens.peek(2) == "="
            word = tokens.peek()
            if word == ";":
                tokens.take()
            elif word == "message" and not is_field:
                tokens.take()
                self._message(message.nested_type.add(), depth + 1)
            elif word == "enum" and not is_field:
                tokens.take()
                self._enum(message.enum_type.add())
            elif word == "oneof" and not is_field:
                tokens.take()
                self._oneof(message)
            elif word in ("option", "reserved", "extensions", "extend") and not is_field:
                tokens.skip_statement()
            elif word == "map" and tokens.peek(1) == "<":
                self._map(message)
            else:
                self._field(message)
        self._name_presence(message)

    def _oneof(self, message: Any) -> None:
        tokens = self._tokens
        place = len(message.oneof_decl)
        message.oneof_decl.add().name = tokens.name()
        tokens.expect("{")
        while not tokens.skip_if("}"):
            if tokens.peek() == "option" and tokens.peek(2) == "=" and tokens.peek(4) == ";":
                tokens.skip_statement()
            elif not tokens.skip_if(";"):
                self._field(message).oneof_index = place

    def _field(self, message: Any) -> Any:
        tokens = self._tokens
        field = message.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL)
        word = tokens.peek()
        if word in _LABELS and tokens.peek(2) != "=":
            tokens.take()
            field.label = _LABELS[word]
            field.proto3_optional = self._is_proto3 and word == "optional"
        kind = tokens.name()
        if kind == "group":
            raise SchemaUnusableError("groups of proto2 are not read")
        _set_type(field, kind)
        field.name = tokens.name()
        self._number(field)
        return field

    def _map(self, message: Any) -> None:
        tokens = self._tokens
        tokens.expect("map", "<")
        key = tokens.name()
        tokens.expect(",")
        value = tokens.name()
        tokens.expect(">")
        field = message.field.add(label=FieldDescriptorProto.LABEL_REPEATED, name=tokens.name())
        entry_name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        _set_type(field, entry_name)
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), start=1):
            _set_type(entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL), kind)
        self._number(field)

    def _number(self, field: Any) -> None:
        self._tokens.expect("=")
        number = self._tokens.integer()
        if not 0 < number < 1 << 29:
            raise SchemaUnusableError(f"the field {field.name} has the number {number}")
        field.number = number
        self._tokens.skip_brackets()
        self._tokens.expect(";")

    def _enum(self, enum: EnumDescriptorProto) -> None:
        tokens = self._tokens
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.skip_if("}"):
            word = tokens.peek()
            if word == "option" and tokens.peek(1) != "=":
                # Numbers with two names are the only option that makes a difference.
                if tokens.peek(1) == "allow_alias" and tokens.peek(3) == "true":
                    enum.options.allow_alias = True
                tokens.skip_statement()
            elif word == "reserved" and tokens.peek(1) != "=":
                tokens.skip_statement()
            elif not tokens.skip_if(";"):
                value = enum.value.add(name=tokens.name())
                tokens.expect("=")
                number = tokens.integer()
                if not -(1 << 31) <= number < 1 << 31:
                    raise SchemaUnusableError(f"the enum's value {value.name} has the number {number}")
                value.number = number
                tokens.skip_brackets()
                tokens.expect(";")

    def _name_presence(self, message: DescriptorProto) -> None:
        """Proto3's `optional` is a oneof of one field, which comes after all that were written."""
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add().name = f"_{field.name}"


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type_name = kind
