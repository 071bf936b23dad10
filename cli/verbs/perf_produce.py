"""`kavka perf produce`: how fast records go out, as Kafka's ProducerPerformance."""

import argparse
from pathlib import Path

from kavka.cli.argument_types import number

HELP = "measure how fast records are produced"
EXAMPLE = "kavka perf produce --topic perf --num-records 1000000 --record-size 100 --throughput -1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.perf.arguments import add_settings_arguments

    parser.add_argument("--topic", required=True, metavar="TOPIC")
    parser.add_argument("--num-records", required=True, type=number(1), metavar="N")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=number(1, 1 << 30), metavar="BYTES", help="random capitals")
    payload.add_argument("--payload-file", type=Path, metavar="FILE", help="its lines, at random")
    payload.add_argument("--payload-monotonic", action="store_true", help="0, 1, 2 and so on")
    parser.add_argument("--payload-delimiter", default="\\n", metavar="TEXT", help="between payloads (a line's end)")
    parser.add_argument("--throughput", type=float, default=-1.0, metavar="N", help="records/sec at most; -1: no limit")
    parser.add_argument("--transactional-id", metavar="ID", help="in transactions of this id")
    parser.add_argument(
        "--transaction-duration-ms", type=number(1), metavar="MS", help="in transactions that last so long (3000)"
    )
    parser.add_argument(
        "--warmup-records", type=number(), default=0, metavar="N", help="these are left out of a second last line"
    )
    add_settings_arguments(parser, "producer")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.perf.producing import measure_producing

    return measure_producing(args)
