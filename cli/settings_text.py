"""Settings on the command line and in files: `name=value`, as Kafka's tools take them."""

import argparse

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE


def pair(text: str) -> tuple[str, str]:
    """`name=value`; the value may be empty, and hold more of `=`. For argparse: raises ArgumentTypeError."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def pairs(text: str) -> dict[str, str]:
    """`a=1,b=[2,3]`: commas part settings but within brackets, which are left out. Raises ArgumentTypeError."""
    found = {}
    for part in _parted(text):
        name, value = pair(part)
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1].strip()
        found[name] = value
    if not found:
        raise argparse.ArgumentTypeError("no setting is named")
    return found


def names(text: str) -> list[str]:
    """`a,b`, for argparse."""
    return [name.strip() for name in text.split(",") if name.strip()]


def file_settings(flag: str, path: str) -> dict[str, str]:
    """A file of properties. Raises Failure."""
    from kavka.config.properties import parse_properties

    try:
        with open(path, "rb") as file:
            return parse_properties(file.read())
    except OSError as error:
        raise Failure(f"{flag} {path}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{flag} {path}: {error}") from error


def broker_ids(text: str) -> list[int]:
    """`1,2,3`, for argparse: raises ArgumentTypeError."""
    ids = names(text)
    if not ids or not all(each.isdecimal() and each.isascii() for each in ids):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of broker ids, as in 1,2")
    return [int(each) for each in ids]


def replica_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3`: a partition's brokers are parted by colons, the preferred leader first. Raises Failure."""
    assignment: list[list[int]] = []
    for partition, part in enumerate(text.split(",")):
        ids = [each.strip() for each in part.split(":")]
        if not all(each.isdecimal() and each.isascii() for each in ids):
            message = f"--replica-assignment {text}: partition {partition} has {part.strip() or 'no brokers'}"
            raise Failure(message, "broker ids are expected, as in 1:2,2:3", WRONG_USAGE)
        brokers = [int(each) for each in ids]
        if len(set(brokers)) < len(brokers):
            message = f"--replica-assignment {text}: partition {partition} has a broker twice"
            raise Failure(message, exit_code=WRONG_USAGE)
        if assignment and len(brokers) != len(assignment[0]):
            message = f"--replica-assignment {text}: partition {partition} has another number of brokers than the first"
            raise Failure(message, exit_code=WRONG_USAGE)
        assignment.append(brokers)
    return assignment


def count(text: str) -> int:
    """A number from 1 on, for argparse: raises ArgumentTypeError."""
    if not (text.isdecimal() and text.isascii()) or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def level(text: str) -> tuple[str, int]:
    """`feature=2`, for argparse: raises ArgumentTypeError."""
    name, _, number = text.partition("=")
    if not name or not (number.isdecimal() and number.isascii()) or int(number) >= 2**15:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=LEVEL")
    return name, int(number)


def _parted(text: str) -> list[str]:
    """At commas that are in no brackets."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
