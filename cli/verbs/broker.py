"""`kavka broker [server.properties] [--override name=value ...]`: run a broker until SIGTERM or SIGINT."""

import argparse

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


def run(args: argparse.Namespace) -> int:
    from kavka.broker.main import run as run_broker

    return run_broker(args.config, args.override)
