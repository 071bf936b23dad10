"""The flags of `kavka perf produce`, `consume` and `e2e`."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from kavka.cli.argument_types import add_properties, checked_pairs, merged, number
from kavka.cli.connecting import add_connection_arguments, client_settings
from kavka.cli.showing import add_output_arguments
from kavka.cli.unknown_settings import warned

TIMEOUT_MS = "30000"


def add_settings_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """--command-property, and what Kafka's tools call it, as `--producer-props` that takes several at once."""
    flags = ["--command-property", *(f"--{name}-property" for name in names)]
    add_properties(parser, *flags, dest="properties", help="a client's setting")
    for name in names:
        parser.add_argument(
            f"--{name}-props",
            nargs="+",
            action="extend",
            default=[],
            dest="props",
            metavar="NAME=VALUE",
            help="several of these",
        )
        parser.add_argument(f"--{name}.config", dest="config", type=Path, metavar="FILE", help="a file of these")
    parser.add_argument(
        "--reporting-interval", type=number(1), default=5_000, metavar="MS", help="between figures (default 5000)"
    )
    parser.add_argument("--print-metrics", action="store_true", help="at the end the client's metrics too, on stderr")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def settings_of(args: argparse.Namespace, defaults: Mapping[str, str]) -> dict[str, str]:
    """The client's settings: `defaults`, over them the connection's, the file's and the flags'. Raises Failure."""
    pairs = [*args.properties, *checked_pairs(getattr(args, "props", ()))]
    own = warned("--command-property", merged(getattr(args, "config", None), "--config", pairs))
    settings = {**defaults, **client_settings(args), **own}
    if args.bootstrap_server is not None:
        settings["bootstrap.servers"] = args.bootstrap_server
    return settings
