"""`kavka perf consume`: how fast records come in, as Kafka's ConsumerPerformance."""

import argparse

from kavka.cli.argument_types import number

HELP = "measure how fast records are consumed"
EXAMPLE = "kavka perf consume --topic perf --num-records 1000000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.perf.arguments import add_settings_arguments

    parser.add_argument("--topic", metavar="TOPIC")
    parser.add_argument("--include", metavar="REGEX", help="in place of --topic: all whose whole name matches")
    parser.add_argument("--num-records", "--messages", required=True, type=number(1), metavar="N")
    parser.add_argument("--group", metavar="GROUP", help="default: one of its own")
    parser.add_argument("--from-latest", action="store_true", help="what comes next, not from the beginning")
    parser.add_argument("--fetch-size", type=number(1, 2**31 - 1), default=1 << 20, metavar="BYTES")
    parser.add_argument("--socket-buffer-size", type=number(-1, 2**31 - 1), default=2 << 20, metavar="BYTES")
    parser.add_argument(
        "--timeout", type=number(1), default=10_000, metavar="MS", help="ends when none came for so long (10000)"
    )
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line every --reporting-interval")
    parser.add_argument("--hide-header", action="store_true", help="no line with the columns' names")
    add_settings_arguments(parser, "consumer")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.perf.consuming import measure_consuming

    return measure_consuming(args)
