"""Records of lines, as Kafka's LineMessageReader reads them.

    headers TAB key TAB value       headers: name:value,name:value

What of that stands in a line, and what stands between, say properties by its names. Lines are bytes here: what is no
UTF-8 arrives as it is, where Kafka's tool mangles it.
"""

from collections.abc import Mapping
from typing import Final

from kavka.cli.produce.input_record import InputRecord, RecordError

PROPERTIES: Final = frozenset(
    {
        "parse.key",
        "key.separator",
        "parse.headers",
        "headers.delimiter",
        "headers.separator",
        "headers.key.separator",
        "ignore.error",
        "null.marker",
    }
)
_SHOWN: Final = 60


class LineFormat:
    """Makes records of lines. Immutable."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises ValueError for properties that nobody knows, or that cannot be told apart."""
        if unknown := sorted(properties.keys() - PROPERTIES - {"topic"}):
            raise ValueError(f"there is no property {unknown[0]}; there are {', '.join(sorted(PROPERTIES))}")
        self._parses_key: Final = _is_true(properties, "parse.key")
        self._parses_headers: Final = _is_true(properties, "parse.headers")
        self._ignores_errors: Final = _is_true(properties, "ignore.error")
        separators = {
            "key.separator": properties.get("key.separator", "\t"),
            "headers.delimiter": properties.get("headers.delimiter", "\t"),
            "headers.separator": properties.get("headers.separator", ","),
            "headers.key.separator": properties.get("headers.key.separator", ":"),
        }
        marker = properties.get("null.marker")
        _check_different(separators, marker)
        self._key_separator: Final = separators["key.separator"].encode()
        self._headers_delimiter: Final = separators["headers.delimiter"].encode()
        self._headers_separator: Final = separators["headers.separator"].encode()
        self._header_separator: Final = separators["headers.key.separator"].encode()
        self._null: Final = None if marker is None else marker.encode()
        self.is_plain: Final = not (self._parses_key or self._parses_headers or marker is not None)
        """Whether a line is a value and nothing else."""

    def record(self, line: bytes) -> InputRecord:
        """The record of a line without its end. Raises RecordError."""
        headers: bytes | None = None
        key: bytes | None = None
        if self._parses_headers:
            headers, line = self._split(line, self._headers_delimiter, "headers delimiter")
        if self._parses_key:
            key, line = self._split(line, self._key_separator, "key separator")
        null = self._null
        return InputRecord(
            None if key == null else key,
            None if line == null else line,
            () if headers is None or headers == null else self._headers(headers),
        )

    def _split(self, line: bytes, separator: bytes, name: str) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self._ignores_errors:
            return None, line
        raise RecordError(f"no {name} {separator.decode()!r} in {_shown(line)}")

    def _headers(self, text: bytes) -> tuple[tuple[str, bytes | None], ...]:
        return tuple(map(self._header, text.split(self._headers_separator)))

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self._header_separator)
        if not found and not self._ignores_errors:
            raise RecordError(
                f"no header key separator {self._header_separator.decode()!r} in the header {_shown(pair)}"
            )
        if name == self._null:
            raise RecordError(f"a header's key cannot be null, and {_shown(name)} is the null marker")
        try:
            return name.decode(), None if not found or value == self._null else value
        except UnicodeDecodeError:
            raise RecordError(f"the header key {_shown(name)} is no UTF-8") from None


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"


def _check_different(separators: Mapping[str, str], marker: str | None) -> None:
    """Raises ValueError as Kafka's reader does: headers could not be taken apart."""
    for name, text in separators.items():
        if not text:
            raise ValueError(f"{name} cannot be empty")
        if text == marker:
            raise ValueError(f"null.marker and {name} may not be equal")
    names = ("headers.delimiter", "headers.separator", "headers.key.separator")
    for index, name in enumerate(names):
        for other in names[index + 1 :]:
            if separators[name] == separators[other]:
                raise ValueError(f"{name} and {other} may not be equal")


def _shown(data: bytes) -> str:
    from kavka.cli.escaping import one_line

    return f"'{one_line(data[:_SHOWN])}{'...' if len(data) > _SHOWN else ''}'"
