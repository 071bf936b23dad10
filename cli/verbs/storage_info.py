"""`kavka storage info [server.properties] [--log-dirs DIR,DIR]`: whose directories they are and what lies in them."""

import argparse
import sys
from pathlib import Path

HELP = "show what lies in the log directories"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", metavar="server.properties", help="whose log.dirs are shown")
    parser.add_argument("--log-dirs", metavar="DIR[,DIR]", help="these directories instead")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.directory_text import directory_lines
    from kavka.config.errors import ConfigError

    failed = False
    try:
        directories = _directories(args)
    except (OSError, ConfigError) as error:
        print(f"kavka storage info: {error}", file=sys.stderr)
        return 1
    for directory in directories:
        try:
            for line in directory_lines(directory):
                print(line)
        except BrokenPipeError:
            raise  # our output's reader left: no fault of the directory's
        except OSError as error:
            print(f"kavka storage info: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


def _directories(args: argparse.Namespace) -> list[Path]:
    """Raises OSError, ConfigError."""
    if args.log_dirs:
        return [Path(text.strip()) for text in args.log_dirs.split(",") if text.strip()]
    import os

    from kavka.config.broker_config import BrokerConfig

    return list(BrokerConfig.load(args.config, [], os.environ).config.log_dirs)
