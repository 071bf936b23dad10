"""A schema as a registry gives it, and the same with all that it refers to."""

from typing import Any, Final, NamedTuple, Protocol

from kavka.pipeline.schemas.errors import SchemaUnavailableError

KINDS: Final = ("AVRO", "PROTOBUF", "JSON")


class Reference(NamedTuple):
    """A schema that another one uses: an Avro name or a Protobuf import, and where the registry has it."""

    name: str
    subject: str
    version: int


class RegisteredSchema(NamedTuple):
    """One registered schema. Its id is never given to another text."""

    id: int
    kind: str
    """Of `KINDS`, or what else the registry says."""
    text: str
    references: tuple[Reference, ...] = ()


class WholeSchema(NamedTuple):
    """A schema with the texts it refers to, by the names it calls them; what others need comes before them."""

    id: int
    kind: str
    text: str
    needed: tuple[tuple[str, str], ...] = ()


class Registry(Protocol):
    """Where schemas are asked for. One thread's."""

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises SchemaMissingError if there is none, SchemaUnavailableError if nobody could say."""

    def by_version(self, subject: str, version: int | str) -> RegisteredSchema:
        """A subject's schema of a version, or its `latest`. Raises as `by_id`."""


def schema_of(document: Any, schema_id: int | None = None) -> RegisteredSchema:
    """Of a registry's JSON document; `schema_id` where the document does not say it. Raises SchemaUnavailableError."""
    try:
        number = document["id"] if schema_id is None else schema_id
        references = tuple(
            Reference(each["name"], each["subject"], each["version"]) for each in document.get("references") or ()
        )
        found = RegisteredSchema(number, document.get("schemaType") or "AVRO", document["schema"], references)
    except (KeyError, TypeError, AttributeError) as error:
        raise SchemaUnavailableError(f"the registry's answer is no schema: {error!r}") from error
    texts = [found.kind, found.text, *(text for each in references for text in (each.name, each.subject))]
    numbers = [found.id, *(each.version for each in references)]
    if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in numbers):
        raise SchemaUnavailableError("the registry's answer is no schema: a text or number is none")
    return found
