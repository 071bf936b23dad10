"""`kavka pipeline audit FILE`: a job's lake against the topics it was made from."""

import argparse

from kavka.cli.pipelines.jobs import add_job_argument
from kavka.cli.pipelines.lakes import add_lake_arguments
from kavka.cli.showing import add_output_arguments

HELP = "compare a job's lake with its topics: what is lost, what is there twice; exit code 1 if anything is"
EXAMPLE = """\
kavka pipeline audit visits.toml
kavka pipeline audit visits.toml --topic page_visits --log-dir /var/lib/kavka --output json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_lake_arguments(parser)
    parser.add_argument("--topic", action="append", metavar="TOPIC", help="this topic alone; may be given again")
    parser.add_argument(
        "--log-dir",
        action="append",
        metavar="DIRECTORY",
        help="read the segment files there and not from brokers; may be given again",
    )
    parser.add_argument(
        "--compacted", action="append", metavar="TOPIC", help="with --log-dir: this topic is; may be given again"
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.pipelines.jobs import extra_is_there, job_of
    from kavka.cli.pipelines.lakes import broker_settings, lake_path
    from kavka.cli.progress import progress
    from kavka.cli.showing import Report, show

    job = job_of(args)
    extra_is_there()
    from kavka.pipeline.jobs.audit.logs import AuditError, BrokerSide, FileSide
    from kavka.pipeline.jobs.audit.run import audit
    from kavka.pipeline.lake.errors import LakeError
    from kavka.pipeline.secret_references import SecretError

    path = lake_path(args, job)
    try:
        side: BrokerSide | FileSide
        side = FileSide(args.log_dir, args.compacted or ()) if args.log_dir else BrokerSide(broker_settings(job))
        try:
            with progress(f"audit of {path}", is_wanted=args.output == "text") as update:
                report = audit(path, side, args.topic, progress=lambda name: update(0, name))
        finally:
            side.close()
    except (AuditError, LakeError, SecretError) as error:
        raise Failure(str(error)) from error
    show(args, Report("pipeline-audit", [report.to_json()], lambda: list(report.lines())))
    return report.exit_code
