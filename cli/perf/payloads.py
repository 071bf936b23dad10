"""What `kavka perf` sends: random capitals of a size, lines of a file, or numbers."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 1 << 30
_CAPITALS: Final = bytes(65 + number % 26 for number in range(256))


def random_payloads(size_bytes: int, seed: int = 0) -> Iterator[bytes]:
    """Capitals, other ones each time; the same in each run."""
    dice = random.Random(seed)
    while True:
        yield dice.randbytes(size_bytes).translate(_CAPITALS)


def file_payloads(payloads: list[bytes], seed: int = 0) -> Iterator[bytes]:
    """One of them at random, each time."""
    dice = random.Random(seed)
    count = len(payloads)
    while True:
        yield payloads[int(dice.random() * count)]


def numbers() -> Iterator[bytes]:
    """0, 1, 2 and so on as text."""
    return (b"%d" % number for number in itertools.count())


def read_payloads(path: Path, delimiter: str) -> list[bytes]:
    """The payloads of a file. Raises OSError, ValueError for a file that has none or is too large."""
    size_bytes = path.stat().st_size
    if size_bytes > MAX_FILE_BYTES:
        raise ValueError(f"{path} has {size_bytes} bytes, at most {MAX_FILE_BYTES} are read")
    separator = delimiter.replace("\\n", "\n").replace("\\t", "\t").encode()
    if not separator:
        raise ValueError("the delimiter of payloads is empty")
    data = path.read_bytes().removesuffix(separator)
    if not data:
        raise ValueError(f"{path} has no payloads")
    return data.split(separator)
