"""`kavka pipeline compact FILE`: a lake's small files into large ones, beside the archive that writes them."""

import argparse

from kavka.cli.argument_types import number
from kavka.cli.pipelines.jobs import add_job_argument
from kavka.cli.pipelines.lakes import add_lake_arguments
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "make large files of a lake's small ones, and delete what was replaced long enough ago"
EXAMPLE = "kavka pipeline compact visits.toml --keep-hours 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_lake_arguments(parser)
    parser.add_argument(
        "--keep-hours", type=number(), metavar="N", help="replaced files stay so long for readers; else the sink's"
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.pipelines.jobs import extra_is_there, job_of
    from kavka.cli.pipelines.lakes import archive_of

    job = job_of(args)
    extra_is_there()
    from kavka.pipeline.lake.compact import Compaction
    from kavka.pipeline.lake.errors import LakeError

    archive = archive_of(args, job)
    keep_hours = archive.keep_hours if args.keep_hours is None else args.keep_hours
    path = archive.layout.lake
    try:
        done = Compaction(path, archive.target_file_bytes, keep_hours, compression=archive.compression).run()
    except LakeError as error:
        raise Failure(str(error)) from error
    columns = "lake", "files_before", "files_after", "size_bytes", "deleted", "orphans"
    row = str(path), done.files_before, done.files_after, done.size_bytes, done.deleted, done.orphans
    show(args, Table("pipeline-compact", columns, [row]))
    return 0
