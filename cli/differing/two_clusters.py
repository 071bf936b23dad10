"""Both sides of a comparison: the cluster that a command asks anyway, and another one."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kavka.cli.connecting import open_admin

if TYPE_CHECKING:
    from kavka.client import Admin


def add_other_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """The flags by which `both` finds the other cluster."""
    group = parser.add_argument_group("the other cluster").add_mutually_exclusive_group(required=required)
    group.add_argument("--to-bootstrap-server", metavar="HOST:PORT[,...]", help="its brokers")
    group.add_argument("--to-profile", metavar="NAME", help="its profile")
    parser.add_argument("--to-command-config", metavar="FILE", help="the other cluster's settings")


@contextmanager
def both(args: argparse.Namespace) -> "Iterator[tuple[Admin, Admin]]":
    """The two clusters' clients: the same one twice where no other is named. Raises Failure, ConfigError."""
    with ExitStack() as stack:
        left = stack.enter_context(open_admin(args))
        right = left
        if args.to_bootstrap_server is not None or args.to_profile is not None:
            other = argparse.Namespace(**vars(args))
            other.bootstrap_server = args.to_bootstrap_server
            other.profile = args.to_profile
            other.command_config = args.to_command_config
            right = stack.enter_context(open_admin(other))
        yield left, right
