"""Topics by name, by pattern and by id. Imports no client."""

import argparse
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from kavka.client import Admin


def add_topic_arguments(parser: argparse.ArgumentParser, *, which: str) -> None:
    """Names, and Kafka's `--topic`; `chosen` goes by them. `which` says what becomes of the topics."""
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"a topic to be {which}")
    parser.add_argument("--topic", metavar="REGEX", help=f"all topics whose whole name matches are {which}")


def chosen(
    admin: "Admin", args: argparse.Namespace, *, default_all: bool = False, exclude_internal: bool = False
) -> list[str]:
    """The topics that are meant, in order; names are taken as they are. Raises Failure where nothing matches.

    `exclude_internal`: a pattern does not match internal topics.
    """
    if not args.topics and args.topic is None and not default_all:
        raise Failure("no topic is named", "name one, or several by --topic REGEX", WRONG_USAGE)
    names = list(dict.fromkeys(args.topics))
    if args.topic is not None or not names:
        listed = matching(args.topic, admin.list_topics(include_internal=not exclude_internal))
        if args.topic is not None and not listed and not getattr(args, "if_exists", False):
            hint = "kavka topics list shows those there are"
            if exclude_internal:
                hint += "; an internal one is named without --topic"
            raise Failure(f"no topic matches --topic {args.topic}", hint)
        names += sorted(set(listed) - set(names))
    return names


def matching(pattern: str | None, names: Iterable[str]) -> list[str]:
    """The names that match as a whole; all without a pattern. `a,b` is either, as in Kafka's tools. Raises Failure."""
    if pattern is None:
        return list(names)
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        expression = re.compile(text)
    except re.error as error:
        raise Failure(f"--topic {pattern}: {error}", "a regular expression is expected", WRONG_USAGE) from error
    return [name for name in names if expression.fullmatch(name)]


def uuid_of(text: str) -> bytes:
    """A topic's id, for argparse: raises ArgumentTypeError."""
    from kavka.protocol.schema import text_to_uuid

    try:
        return text_to_uuid(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no topic id, which has 22 letters and digits") from None
