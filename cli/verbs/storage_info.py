"""`kavka storage info [server.properties] [--log-dirs DIR,DIR]`: whose directories they are and what lies in them."""

import argparse
from pathlib import Path

HELP = "show what lies in the log directories"
EXAMPLE = "kavka storage info --log-dirs /var/lib/kavka"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", metavar="server.properties", help="whose log.dirs are shown")
    parser.add_argument("--log-dirs", metavar="DIR[,DIR]", help="these directories instead")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.directory_text import directory_lines
    from kavka.cli.output import complain, emit
    from kavka.config.errors import ConfigError

    command = "kavka storage info"
    code = 0
    try:
        directories = _directories(args)
    except (OSError, ConfigError, ValueError) as error:
        return complain(command, error)
    for directory in directories:
        try:
            for line in directory_lines(directory):
                emit(line)
        except OSError as error:
            code = complain(command, error)
    return code


def _directories(args: argparse.Namespace) -> list[Path]:
    """Raises OSError, ConfigError, ValueError for --log-dirs without a directory."""
    if args.log_dirs is not None:
        named = [Path(text.strip()) for text in args.log_dirs.split(",") if text.strip()]
        if not named:
            raise ValueError("--log-dirs names no directory")
        return named
    import os

    from kavka.config.sources import load_config

    return list(load_config(args.config, [], os.environ).config.log_dirs)
