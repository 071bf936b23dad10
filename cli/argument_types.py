"""What flags take: numbers, times, properties; what is wrong with them is said in words."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

Value = TypeVar("Value")


def checked(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """For `type=`: what `parse` raises as ValueError is what the user reads."""

    def parsed(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def number(least: int = 0, most: int = 2**63 - 1) -> Callable[[str], int]:
    """For `type=`: a whole number within these."""

    def parsed(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or not least <= int(text) <= most:
            limit = f"from {least} on" if most >= 2**31 - 1 else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is no number {limit}")
        return int(text)

    return parsed


def moment(text: str) -> int:
    """For `type=`: milliseconds since 1970, of what `kavka.cli.moments` reads."""
    import time

    from kavka.cli.moments import moment_ms

    return checked(lambda given: moment_ms(given, time.time_ns() // 1_000_000))(text)


def name_and_value(text: str) -> tuple[str, str]:
    """For `type=`: `name=value`; the value may hold further equals signs."""
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def add_properties(parser: Any, *flags: str, dest: str, help: str) -> None:  # noqa: A002  # argparse's own word
    """A flag of NAME=VALUE that may come again, and in Kafka's way take several, parted by commas or not."""
    parser.add_argument(
        *flags, dest=dest, action="append", default=[], type=name_and_value, metavar="NAME=VALUE", help=help
    )


def checked_pairs(texts: Iterable[str]) -> list[tuple[str, str]]:
    """NAME=VALUE of a flag that takes several. Raises Failure."""
    try:
        return [name_and_value(text) for text in texts]
    except argparse.ArgumentTypeError as error:
        raise wrong(str(error)) from None


def merged(path: Path | None, flag: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A file's properties, and over them those of flags. Raises Failure for a file that cannot be read."""
    found: dict[str, str] = {}
    if path is not None:
        from kavka.config.properties import parse_properties

        try:
            found.update(parse_properties(path.read_bytes()))
        except OSError as error:
            raise Failure(f"{flag} {path}: {error.strerror}") from error
        except ValueError as error:
            raise Failure(f"{flag} {path}: {error}") from error
    found.update(pairs)
    return found


def wrong(message: str) -> Failure:
    """Flags that cannot be together, or a value that only shows itself to be wrong later."""
    return Failure(message, exit_code=WRONG_USAGE)
