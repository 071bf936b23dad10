"""`kavka registry copy (--to-zookeeper | --from-zookeeper) [server.properties]`.

Of a stopped broker: its cluster's state moves from the file in its first log directory to `zookeeper.connect`, where
other brokers can join it, or back.
"""

import argparse

HELP = "copy a stopped broker's cluster state from its file into ZooKeeper, or back"
EXAMPLE = "kavka registry copy --to-zookeeper server.properties"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config_file", nargs="?", metavar="server.properties", help="the broker's settings")
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help="a broker's setting")
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--to-zookeeper", action="store_true", help="into the empty root path of zookeeper.connect")
    direction.add_argument("--from-zookeeper", action="store_true", help="into the first of log.dirs")


def run(args: argparse.Namespace) -> int:
    import os

    from kavka.cli.adopting import REFUSED
    from kavka.cli.output import complain, emit
    from kavka.cli.registry_copying import copy_from_zookeeper, copy_to_zookeeper
    from kavka.config.promises import check_promises
    from kavka.config.sources import load_config

    try:
        config = load_config(args.config_file, args.override, os.environ).config
        check_promises(config)
        count = copy_to_zookeeper(config) if args.to_zookeeper else copy_from_zookeeper(config)
    except REFUSED as error:
        return complain("kavka registry copy", error)
    emit(f"{count} nodes copied")
    return 0
