"""`--format`: a record by a pattern, as kcat's `-f`.

    %t topic   %p partition   %o offset   %T timestamp (ms)   %h headers: name=value,name=value
    %k key     %K its size in bytes, -1 for none
    %s %v value   %S its size   %R its size as four bytes, big-endian
    %%  a percent sign       \\n \\r \\t \\\\ \\0 \\xHH  escapes

A pattern without an escape and without %R gets a line for each record: kcat would run them together.
"""

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final

from kavka.cli.consume.shown_record import ShownRecord

Part = Callable[[ShownRecord], bytes]
_TOKEN: Final = re.compile(rb"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}
_pack: Final = struct.Struct(">i").pack


def compiled(pattern: str, escape: Callable[[bytes], bytes]) -> Callable[[ShownRecord], bytes]:
    """What makes bytes of a record by the pattern. `escape` is called with what comes from records.

    Raises ValueError for a pattern that cannot be.
    """
    raw = pattern.encode()
    parts: list[Part | bytes] = []
    has_own_ends = False
    begin = 0
    for token in _TOKEN.finditer(raw):
        if token.start() > begin:
            parts.append(raw[begin : token.start()])
        begin = token.end()
        field, escaped = token.groups()
        if field is not None:
            parts.append(_field(field, escape))
            has_own_ends = has_own_ends or field == b"R"
        else:
            parts.append(_escaped(escaped))
            has_own_ends = True
    parts.append(raw[begin:] + (b"" if has_own_ends else b"\n"))
    return _joined(parts)


def _joined(parts: Sequence[Part | bytes]) -> Callable[[ShownRecord], bytes]:
    def shown(record: ShownRecord) -> bytes:
        return b"".join([part if isinstance(part, bytes) else part(record) for part in parts])

    return shown


def _escaped(letter: bytes) -> bytes:
    if letter[:1] == b"x" and len(letter) == 3:
        return bytes([int(letter[1:], 16)])
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    raise ValueError(
        f"\\{letter.decode('utf-8', 'replace')} is no escape of a format; there are \\n \\r \\t \\\\ \\0 \\xHH"
    )


def _field(letter: bytes, escape: Callable[[bytes], bytes]) -> Part | bytes:
    if letter == b"%":
        return b"%"
    if letter == b"k":
        return lambda record: b"" if record.key is None else escape(record.key)
    if letter in (b"s", b"v"):
        return lambda record: b"" if record.value is None else escape(record.value)
    if letter == b"h":
        return lambda record: _headers(record, escape)
    if letter == b"t":
        return lambda record: escape(record.topic.encode())
    plain = _PLAIN.get(letter)
    if plain is None:
        raise ValueError(
            f"%{letter.decode('utf-8', 'replace')} is no field of a format; there are %t %p %o %k %v %s %h %T %S %K %R"
        )
    return plain


_PLAIN: Final[dict[bytes, Part]] = {
    b"p": lambda record: b"%d" % record.partition,
    b"o": lambda record: b"%d" % record.offset,
    b"T": lambda record: b"%d" % record.timestamp_ms,
    b"K": lambda record: b"%d" % _size(record.key),
    b"S": lambda record: b"%d" % _size(record.value),
    b"R": lambda record: _pack(_size(record.value)),
}


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ShownRecord, escape: Callable[[bytes], bytes]) -> bytes:
    return b",".join(
        [escape(name.encode()) + b"=" + (b"NULL" if value is None else escape(value)) for name, value in record.headers]
    )
