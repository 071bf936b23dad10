"""`kavka storage settings [server.properties] [--delete NAME ...]`.

Of a stopped broker: the settings that were changed while it ran. They take precedence over the file and the command
line, so that one that keeps the broker from starting (an address that is gone) has to be deleted here.
"""

import argparse

HELP = "show, or delete, the settings that a stopped broker keeps since they were changed while it ran"
EXAMPLE = "kavka storage settings server.properties --delete log.retention.ms"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config_file", nargs="?", metavar="server.properties", help="the broker's settings")
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help="a broker's setting")
    parser.add_argument("--delete", action="append", default=[], metavar="NAME", help="forget this setting")


def run(args: argparse.Namespace) -> int:
    import os

    from kavka.cli.adopting import REFUSED
    from kavka.cli.kept_settings import kept_settings, shown
    from kavka.cli.output import complain, emit
    from kavka.config.sources import load_config

    try:
        kept = kept_settings(load_config(args.config_file, args.override, os.environ).config, args.delete)
    except REFUSED as error:
        return complain("kavka storage settings", error)
    for entity, texts in sorted(kept.items()):
        for name, text in sorted(texts.items()):
            emit(f"broker {entity}: {shown(name, text)}")
    if not any(kept.values()):
        emit("no settings")
    return 0
