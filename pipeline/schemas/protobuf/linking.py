"""Files of a schema made one: what it imports is among its references, Protobuf's own, or Confluent's."""

from functools import partial
from importlib import import_module
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from kavka.pipeline.schemas.errors import SchemaUnusableError
from kavka.pipeline.schemas.protobuf.parser import file_descriptor
from kavka.pipeline.schemas.registry.schema import WholeSchema

_OWN: Final = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in (
        *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp"),
        *("type", "wrappers"),
    )
}
_CONFLUENT: Final = {
    # Says something about fields in options alone, which nobody reads here.
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
}
_MAX_FILES: Final = 300


def linked(schema: WholeSchema) -> Any:
    """The FileDescriptor of a schema, in a pool of its own. Raises SchemaUnusableError."""
    if schema.kind != "PROTOBUF":
        raise SchemaUnusableError(f"schema {schema.id} is of type {schema.kind}, not PROTOBUF")
    texts = _CONFLUENT | dict(schema.needed)
    name = f"schema-{schema.id}.proto"
    pool = DescriptorPool()
    added: set[str] = set()
    try:
        _add(pool, file_descriptor(name, schema.text), texts, added, ())
        return pool.FindFileByName(name)
    except (TypeError, ValueError, KeyError) as error:
        raise SchemaUnusableError(
            f"schema {schema.id} is no Protobuf schema: {' '.join(str(error).split())}"
        ) from error


def message_of(file: Any, name: str | None) -> Any:
    """A message of a file by its name, with the package or without; the first one for None.

    Raises SchemaUnusableError.
    """
    messages = list(file.message_types_by_name.values())
    if name is None:
        if not messages:
            raise SchemaUnusableError("the schema has no message")
        return messages[0]
    inner = name.removeprefix(f"{file.package}.").split(".")
    found = file.message_types_by_name.get(inner[0])
    for part in inner[1:]:
        found = found.nested_types_by_name.get(part) if found is not None else None
    if found is None:
        raise SchemaUnusableError(f"the schema has no message {name}")
    return found


def message_at(file: Any, indexes: tuple[int, ...]) -> Any | None:
    """A message by its place in the file, or None."""
    messages = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if index >= len(messages):
            return None
        found = messages[index]
        messages = list(found.nested_types)
    return found


def _add(pool: Any, file: Any, texts: dict[str, str], added: set[str], path: tuple[str, ...]) -> None:
    if len(added) > _MAX_FILES:
        raise SchemaUnusableError("the schema imports too many files")
    for name in file.dependency:
        if name in added:
            continue
        if name in path:
            raise SchemaUnusableError(f"{name} imports itself")
        _add(pool, _imported(name, texts), texts, added, (*path, name))
    pool.AddSerializedFile(file.SerializeToString())
    added.add(file.name)


def _imported(name: str, texts: dict[str, str]) -> Any:
    make = partial(file_descriptor, name)
    if name in texts:
        return make(texts[name])
    if name in _OWN:
        return FileDescriptorProto.FromString(import_module(_OWN[name]).DESCRIPTOR.serialized_pb)
    raise SchemaUnusableError(f"the schema imports {name}, which is not among its references")
