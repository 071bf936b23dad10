"""`kavka groups watch`: states, lag and rebalances as they go, until Ctrl-C."""

import argparse

from kavka.cli.connecting import add_connection_arguments, client_settings, open_admin
from kavka.cli.groups.choosing import add_group_arguments

HELP = "show groups' states, lag and rebalances as they go, until Ctrl-C"
EXAMPLE = "kavka groups watch --group billing --interval-ms 1000"
_SHORTEST_MS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    parser.add_argument("--interval-ms", type=_interval, default=2_000, metavar="MS", help="between updates (2000)")
    parser.add_argument("--updates", type=_count, metavar="N", help="end after so many")
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.groups.choosing import chosen_groups
    from kavka.cli.groups.unread import UnreadTimestamps
    from kavka.cli.groups.watching import Watch, watch_on

    with open_admin(args) as admin, UnreadTimestamps(client_settings(args), args.timeout_ms) as unread:
        watch = Watch(admin, lambda: chosen_groups(args, admin), unread.look)
        watch_on(watch, args.interval_ms, args.updates)
    return 0


def _interval(text: str) -> int:
    if not text.isdecimal() or int(text) < _SHORTEST_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of milliseconds from {_SHORTEST_MS} on")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of updates")
    return int(text)
