"""`kavka storage dump FILE... [--print-data-log]`: files of a partition as text, like Kafka's DumpLogSegments."""

import argparse
import stat
from collections.abc import Iterator
from pathlib import Path

HELP = "print segments, indexes, producer snapshots and checkpoints as text"
EXAMPLE = "kavka storage dump --print-data-log /var/lib/kavka/orders-0/00000000000000000000.log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a file of a log directory")
    parser.add_argument("--print-data-log", action="store_true", help="with each batch, its records")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.output import complain, emit

    code = 0
    for path in args.files:
        emit(f"Dumping {path}")
        try:
            for line in _lines(path, args.print_data_log):
                emit(line)
        except OSError as error:
            code = complain("kavka storage dump", f"{path}: {error.strerror or error}")
        except ValueError as error:
            code = complain("kavka storage dump", f"{path}: {error}")
    return code


def _lines(path: Path, print_data_log: bool) -> Iterator[str]:
    """Raises OSError, ValueError for what isn't such a file."""
    from kavka.cli import index_text, log_text, plain_text

    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("not a file")
    name = path.name.removesuffix(".deleted").removesuffix(".cleaned").removesuffix(".swap")
    suffix = Path(name).suffix
    if suffix == ".log":
        return log_text.log_lines(path, print_data_log=print_data_log)
    if name.endswith("-checkpoint") or name in plain_text.BY_NAME:
        return plain_text.plain_lines(path)
    if suffix in index_text.BY_SUFFIX:
        return index_text.BY_SUFFIX[suffix](path)
    raise ValueError("not a .log, .index, .timeindex, .txnindex, .snapshot, checkpoint or metadata file")
