"""`kavka perf e2e`: how long a record takes from its producer to its consumer, as Kafka's EndToEndLatency."""

import argparse

from kavka.cli.argument_types import number

HELP = "measure how long records take from producer to consumer"
EXAMPLE = "kavka perf e2e --topic perf --num-records 10000 --record-size 100"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.perf.arguments import add_settings_arguments

    parser.add_argument("--topic", required=True, metavar="TOPIC", help="one that nobody else writes to")
    parser.add_argument("--num-records", required=True, type=number(1), metavar="N")
    parser.add_argument("--record-size", type=number(1, 1 << 30), default=100, metavar="BYTES", help="default 100")
    parser.add_argument("--producer-acks", choices=("1", "all"), default="all", help="default: all")
    for flag, text in (
        ("--record-key-size", "of the key (default: none)"),
        ("--num-headers", "headers of each record (default: none)"),
        ("--record-header-key-size", "of a header's name"),
        ("--record-header-size", "of a header's value"),
    ):
        parser.add_argument(flag, type=number(0, 1 << 20), default=0, metavar="N", help=text)
    add_settings_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.perf.end_to_end import measure_end_to_end

    return measure_end_to_end(args)
