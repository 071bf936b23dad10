"""`kavka offsets get`: partitions' first, last and other offsets, as Kafka's GetOffsetShell."""

import argparse

from kavka.cli.argument_types import checked
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "show partitions' offsets: the last, the first, at a time"
EXAMPLE = """\
kavka offsets get --topic visits
kavka offsets get --topic-partitions 'visits:0-3,orders' --time earliest
kavka offsets get --topic visits --time 15m"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="REGEX", help="topics whose whole name matches (default: all)")
    parser.add_argument("--partitions", metavar="N,N", help="these partitions (default: all)")
    parser.add_argument(
        "--topic-partitions", metavar="RULE,RULE", help="REGEX[:N | :N-M | :N- | :-M] each, M not counted"
    )
    parser.add_argument(
        "--time",
        type=checked(_spec),
        default=-1,
        metavar="TIME",
        help="latest (-1, the default), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), "
        "earliest-pending-upload (-6), or of the first record since: ms, 2026-01-01T08:00Z, 15m (ago)",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="leave internal topics out")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.offsets.finding import offset_rows

    with open_admin(args) as admin:
        rows, failure = offset_rows(admin, args)
    lines = [f"{escaped(row.topic)}:{row.partition}:{row.offset}" for row in rows]
    show(args, Report("offsets-get", (row.as_object() for row in rows), lambda: lines))
    if failure is not None:
        raise failure
    return 0


def _spec(text: str) -> int:
    import time

    from kavka.cli.offsets.specs import spec_of

    return spec_of(text, time.time_ns() // 1_000_000)
