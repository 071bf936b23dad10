"""Schemas in a directory: `SUBJECT/VERSION.json`, each file what a registry answers for that version."""

import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

from kavka.pipeline.schemas.errors import SchemaMissingError, SchemaUnavailableError
from kavka.pipeline.schemas.registry.schema import RegisteredSchema, schema_of

_MAX_FILES: Final = 100_000


class DirectoryRegistry:
    """Reads the files anew whenever it is asked, so that more can be put there. Names are quoted as in addresses."""

    def __init__(self, directory: str, max_bytes: int = 4 << 20) -> None:
        self._directory: Final = Path(directory)
        self._max_bytes: Final = max_bytes

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises SchemaMissingError, SchemaUnavailableError."""
        for count, file in enumerate(self._directory.glob("*/*.json")):
            if count >= _MAX_FILES:
                raise SchemaUnavailableError(f"{self._directory} has more than {_MAX_FILES} files")
            schema = self._read(file)
            if schema.id == schema_id:
                return schema
        raise SchemaMissingError(f"{self._directory} has no schema with id {schema_id}")

    def by_version(self, subject: str, version: int | str) -> RegisteredSchema:
        """Raises SchemaMissingError, SchemaUnavailableError."""
        folder = self._directory / quote(subject, safe="")
        if version == "latest":
            numbers = [int(file.stem) for file in folder.glob("*.json") if file.stem.isdecimal()]
            version = max(numbers, default=0)
        file = folder / f"{version}.json"
        if not file.is_file():
            raise SchemaMissingError(f"{self._directory} has no subject {subject} of version {version}")
        return self._read(file)

    def _read(self, file: Path) -> RegisteredSchema:
        try:
            with file.open("rb") as opened:
                data = opened.read(self._max_bytes + 1)
            if len(data) > self._max_bytes:
                raise SchemaUnavailableError(f"{file} is longer than {self._max_bytes} bytes")
            return schema_of(json.loads(data))
        except (OSError, ValueError, RecursionError) as error:
            raise SchemaUnavailableError(f"{file} cannot be read: {error}") from error
