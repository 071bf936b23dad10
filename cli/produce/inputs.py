"""What `kavka produce` reads: standard input or files; lines, JSON lines or whole files."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kavka.cli.failing import Failure
from kavka.cli.produce.input_record import InputRecord, RecordError
from kavka.cli.produce.lines import MAX_LINE_BYTES, lines_of

PROMPT: Final = ">"


class Found(NamedTuple):
    """A record, or why there is none, and where it stood: `line 7`, `orders.txt line 7`, `photo.png`."""

    where: str
    record: InputRecord | None
    problem: str = ""
    read_bytes: int = 0


Parse = Callable[[bytes], InputRecord]
"""Makes a record of a line, or of a whole file. Raises RecordError."""


def records_of(files: Sequence[Path], parse: Parse, *, whole: bool) -> Iterator[Found]:
    """The records of the files in their order, or of standard input. Raises OSError."""
    if whole:
        for path in files:
            data = path.read_bytes()
            yield Found(str(path), parse(data), read_bytes=len(data))
        return
    if not files:
        yield from _of_stream(_standard_input(), parse, "", _prompt_of())
    for path in files:
        with path.open("rb") as stream:
            yield from _of_stream(stream, parse, f"{path} ", None)


def size_bytes(files: Sequence[Path]) -> int | None:
    """Of all files; None where it is not known before they are read. Raises OSError for one that is not there."""
    sizes = [path.stat() for path in files]
    if not sizes or not all(path.is_file() for path in files):
        return None
    return sum(size.st_size for size in sizes)


def _of_stream(stream: BinaryIO, parse: Parse, where: str, prompt: Callable[[], None] | None) -> Iterator[Found]:
    if prompt is not None:
        prompt()
    for number, line in lines_of(stream):
        place = f"{where}line {number}"
        if line is None:
            yield Found(place, None, f"longer than {MAX_LINE_BYTES} bytes")
        else:
            try:
                yield Found(place, parse(line), read_bytes=len(line) + 1)
            except RecordError as error:
                yield Found(place, None, str(error), len(line) + 1)
        if prompt is not None:
            prompt()


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # the shell's `<&-`
        raise Failure("standard input is closed", "give --file FILE")
    return sys.stdin.buffer


def _prompt_of() -> Callable[[], None] | None:
    """A sign for people that a line is expected; None where nobody types."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
        return None

    def prompt() -> None:
        print(PROMPT, end="", file=sys.stderr, flush=True)

    return prompt
