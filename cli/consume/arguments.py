"""The flags of `kavka consume`."""

import argparse
from pathlib import Path
from typing import Final

from kavka.cli.argument_types import add_properties, checked, moment, number
from kavka.cli.connecting import add_connection_arguments
from kavka.cli.consume.places import partitions_of, place_of

PRINTED: Final = ("key", "headers", "timestamp", "partition", "offset")


def add_consume_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    _what(parser)
    _until(parser)
    _how(parser)
    _settings(parser)
    add_connection_arguments(parser, with_timeout=False)


def _what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is read")
    group.add_argument("topics", nargs="*", metavar="TOPIC", help="topics")
    group.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="the same")
    group.add_argument("--include", "--whitelist", metavar="REGEX", help="all topics whose whole name matches")
    group.add_argument(
        "--partition", type=checked(partitions_of), metavar="N[,N|N-N]", help="these partitions (default: all)"
    )
    group.add_argument(
        "--group", metavar="GROUP", help="share partitions with the group's members, and commit what was shown"
    )
    begin = group.add_mutually_exclusive_group()
    begin.add_argument(
        "--offset",
        type=checked(place_of),
        metavar="OFFSET",
        help="from here: a number, -N (so many before the end), earliest, latest (the default)",
    )
    begin.add_argument("--from-beginning", action="store_true", help="from the first record there is")
    begin.add_argument(
        "--from-time", type=moment, metavar="TIME", help="from the first record since: ms, 2026-01-01T08:00Z, 15m (ago)"
    )
    group.add_argument(
        "--isolation-level",
        "--isolation",
        choices=("read_uncommitted", "read_committed"),
        help="read_committed: no records of transactions that are open or were aborted",
    )


def _until(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when it stops (else: never)")
    group.add_argument("--exit-at-end", "-e", action="store_true", help="at the end, as it is when reading begins")
    group.add_argument("--until-offset", type=number(), metavar="OFFSET", help="before this offset, in each partition")
    group.add_argument("--until-time", type=moment, metavar="TIME", help="before the first record since")
    group.add_argument("--max-messages", "-c", type=number(), metavar="N", help="after so many records")
    group.add_argument("--timeout-ms", type=number(), metavar="MS", help="after so long without a record")


def _how(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how records are shown")
    group.add_argument(
        "--format",
        "-f",
        metavar="FORMAT",
        help=r"as kcat's: %%t topic, %%p partition, %%o offset, %%T timestamp, %%k key, %%v or %%s value, %%h headers, "
        r"%%K and %%S sizes, %%R size in four bytes; \n \t \r \xHH",
    )
    group.add_argument("--output", choices=("text", "json"), default="text", help="json: an object a line")
    for part in PRINTED:
        group.add_argument(f"--print-{part}", action="store_true", help=f"also the {part}")
    group.add_argument("--no-value", action="store_true", help="not the value")
    group.add_argument("--key-separator", metavar="TEXT", help="between the parts (default: a tab)")
    group.add_argument(
        "--formatter",
        metavar="NAME",
        help="offsets, group-metadata, transactions, share-state: internal topics in the JSON of Kafka's tool; "
        "default (no decoding), none; or Kafka's class",
    )
    add_properties(
        group, "--formatter-property", "--property", dest="formatter_properties", help="print.key=true and its like"
    )
    group.add_argument("--formatter-config", type=Path, metavar="FILE", help="a file of these")
    group.add_argument("--key-deserializer", metavar="CLASS", help="Java's name, or module.Class")
    group.add_argument("--value-deserializer", metavar="CLASS", help="Java's name, or module.Class")


def _settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings")
    add_properties(
        group, "--consumer-property", "--command-property", dest="consumer_properties", help="a consumer's setting"
    )
    group.add_argument(
        "--consumer.config",
        dest="consumer_config",
        type=Path,
        metavar="FILE",
        help="a file of these, as Kafka's tool has it",
    )
    group.add_argument(
        "--skip-message-on-error", action="store_true", help="go on behind batches whose bytes are corrupt"
    )
