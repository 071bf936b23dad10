"""`kavka broker [server.properties] [--override name=value ...]`: run a broker until SIGTERM or SIGINT.

With `--ephemeral` it is one for tests, and lives until its standard input ends.
"""

import argparse
from typing import Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

MOST_BROKERS: Final = 9

HELP = "run a broker"
EXAMPLE = "kavka broker server.properties --override log.dirs=/var/lib/kavka"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", metavar="server.properties", help="settings; without it, the defaults")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting; takes precedence over the environment and the file; may be repeated",
    )
    parser.add_argument(
        "--ephemeral",
        action="store_true",
        help="for tests: prints its address as JSON, ends with its standard input, and leaves nothing behind",
    )
    parser.add_argument(
        "--brokers", type=int, metavar="N", help="with --ephemeral: a cluster of so many in one process (1)"
    )


def run(args: argparse.Namespace) -> int:
    if args.ephemeral:
        return _run_ephemeral(args)
    if args.brokers is not None:
        raise Failure("--brokers is for --ephemeral alone", exit_code=WRONG_USAGE)
    from kavka.broker.main import run as run_broker

    return run_broker(args.config, args.override)


def _run_ephemeral(args: argparse.Namespace) -> int:
    if args.config is not None:
        raise Failure("--ephemeral takes its settings by --override", exit_code=WRONG_USAGE)
    brokers = 1 if args.brokers is None else args.brokers
    if not 1 <= brokers <= MOST_BROKERS:
        raise Failure(f"--brokers {brokers}: 1 to {MOST_BROKERS} are possible", exit_code=WRONG_USAGE)
    from kavka.testing.ephemeral import run as run_ephemeral

    return run_ephemeral(args.override, brokers)
