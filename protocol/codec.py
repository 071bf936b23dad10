"""Messages to bytes and back, by functions compiled once for each (class, version).

Compiled on first use and kept for the life of the process; any thread may call (two that meet compile the same function
twice, and either is kept). `interpreter` is the readable twin.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from kavka.protocol.decoding import compile_decoder
from kavka.protocol.encoding import compile_encoder
from kavka.protocol.layout import MAX_ELEMENTS, layout_of
from kavka.protocol.schema import Buffer, Message, RecordsPart

M = TypeVar("M", bound=Message)
Decoder: TypeAlias = Callable[..., M]
Encoder: TypeAlias = Callable[[M], bytes]
Part: TypeAlias = Buffer | RecordsPart


def decode(
    cls: type[M],
    version: int,
    data: Buffer,
    position: int = 0,
    *,
    max_elements: int = MAX_ELEMENTS,
    trailing: bool = False,
) -> M:
    """The message at `position` in `data`.

    Records come out as memoryviews of `data`, everything else as values of its own. Raises DecodeError for anything
    wrong: cut short, lengths beyond the data, null where it may not be, strings that are not UTF-8, more than
    `max_elements` structs and strings, or bytes behind the message unless `trailing`. Raises ValueError for a version
    that the class doesn't have.
    """
    return decoder(cls, version, trailing=trailing)(data, position, max_elements)


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message. Raises EncodeError for a value out of range, null, or without a place in the version."""
    return encoder(type(message), version)(message)


def encode_parts(message: Message, version: int) -> list[Part]:
    """The message's bytes in pieces, to be sent one after the other.

    Records may be a RecordsPart (a slice of a file): it stands in the list itself, where its `size_bytes` bytes belong.
    So do large records in memory, uncopied. Errors are those of `encode`.
    """
    return parts_encoder(type(message), version)(message)


def decoder(cls: type[M], version: int, *, trailing: bool = False) -> Decoder[M]:
    """The function behind `decode`: `(data, position=0, max_elements=MAX_ELEMENTS) -> message`."""
    function = _DECODERS.get((cls, version, trailing))
    if function is None:
        function = compile_decoder(layout_of(cls, version), trailing=trailing)
        _DECODERS[cls, version, trailing] = function
    return function


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """The function behind `encode`."""
    function = _ENCODERS.get((cls, version))
    if function is None:
        function = _ENCODERS[cls, version] = compile_encoder(layout_of(cls, version), parts=False)
    return function


def parts_encoder(cls: type[M], version: int) -> Callable[[M], list[Part]]:
    """The function behind `encode_parts`."""
    function = _PARTS_ENCODERS.get((cls, version))
    if function is None:
        function = _PARTS_ENCODERS[cls, version] = compile_encoder(layout_of(cls, version), parts=True)
    return function


_DECODERS: Final[dict[tuple[type[Message], int, bool], Callable[..., Any]]] = {}
_ENCODERS: Final[dict[tuple[type[Message], int], Callable[[Any], bytes]]] = {}
_PARTS_ENCODERS: Final[dict[tuple[type[Message], int], Callable[[Any], list[Part]]]] = {}
