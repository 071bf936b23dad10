"""The flags that say where a group is to go on, named as in Kafka's tool."""

import argparse
from collections.abc import Callable
from pathlib import Path

from kavka.cli.groups.moments import datetime_ms, duration_ms


def add_scenario_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of which one says where to."""
    scenario = parser.add_mutually_exclusive_group(required=True)
    scenario.add_argument("--to-earliest", action="store_true", help="to the first record")
    scenario.add_argument("--to-latest", action="store_true", help="behind the last record")
    scenario.add_argument("--to-current", action="store_true", help="to what is committed, or behind the last record")
    scenario.add_argument("--to-offset", type=int, metavar="OFFSET", help="to this offset")
    scenario.add_argument("--shift-by", type=int, metavar="N", help="N records further, or back with -N")
    scenario.add_argument(
        "--to-datetime", type=_time(datetime_ms), metavar="TIME", help="to the first record since 2026-11-23T01:20:00"
    )
    scenario.add_argument(
        "--by-duration", type=_time(duration_ms), metavar="P1DT2H3M4S", help="to the first record since that long ago"
    )
    scenario.add_argument("--from-file", type=Path, metavar="FILE", help="to the offsets of an --export")


def _time(read: Callable[[str], int]) -> Callable[[str], int]:
    def checked(text: str) -> int:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked
