"""`replay` and `backfill`: their flags, how far they are, what came of them."""

import argparse
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.argument_types import moment, number
from kavka.cli.failing import Failure
from kavka.cli.pipelines.jobs import add_job_argument, extra_is_there, job_of
from kavka.cli.pipelines.lakes import add_lake_arguments, broker_settings, lake_path, lake_topic
from kavka.cli.progress import progress
from kavka.cli.showing import Table, add_output_arguments, show

if TYPE_CHECKING:
    from kavka.pipeline.sending.replaying import Replayed

PARTITIONS: Final = "source", "key"


def add_replay_arguments(parser: argparse.ArgumentParser) -> None:
    """What both take."""
    add_job_argument(parser)
    add_lake_arguments(parser)
    parser.add_argument("--topic", metavar="TOPIC", help="of the lake's, where it has several")
    parser.add_argument(
        "--from",
        dest="start",
        type=_moment,
        default=Given(),
        metavar="TIME",
        help="rows since then: 2026-01-01, 7d",
    )
    parser.add_argument("--to", dest="end", type=_moment, default=Given(), metavar="TIME", help="rows before then")
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="the same name goes on where it was, another sends all again; by default the job's",
    )
    parser.add_argument(
        "--partitions", choices=PARTITIONS, default="source", help="as they were (the default), or as keys decide"
    )
    parser.add_argument("--rate", type=number(1), metavar="ROWS/S", help="no more of all partitions together")
    add_output_arguments(parser)


class Given(NamedTuple):
    """A time of the command line. `said` is how one was said that moves with the clock, as `7d` does."""

    time_ms: int | None = None
    said: str | None = None


def _moment(text: str) -> Given:
    """For `type=`."""
    from kavka.cli.moments import moment_ms

    time_ms = moment(text)
    is_moving = moment_ms(text, 1 << 50) != moment_ms(text, 1 << 51)
    return Given(time_ms, text if is_moving else None)


def replay_and_show(args: argparse.Namespace, target: str | None, *, is_backfill: bool) -> int:
    """Send, and show what was sent; `target` None: the topic itself. Raises Failure, KafkaError."""
    job = job_of(args)
    extra_is_there()
    from kavka.pipeline.lake.errors import LakeError
    from kavka.pipeline.secret_references import SecretError
    from kavka.pipeline.sending.lake_rows import NoRowsError
    from kavka.pipeline.sending.replaying import Replay, backfill, replay
    from kavka.pipeline.sending.target_checks import TargetError

    path = lake_path(args, job)
    topic = lake_topic(args, path)
    what = Replay(
        path,
        topic,
        topic if target is None else target,
        broker_settings(job),
        args.name or f"{job.name}-{'backfill' if is_backfill else 'replay'}",
        args.start.time_ms,
        args.end.time_ms,
        args.partitions,
        args.rate,
        from_said=args.start.said,
        to_said=args.end.said,
    )
    began_s = time.monotonic()
    with progress(f"{path} to {what.target}", is_wanted=args.output == "text") as update:

        def told(so_far: "Replayed") -> None:
            update(0, f"{so_far.rows:,} rows, {so_far.rows / max(time.monotonic() - began_s, 0.001):,.0f}/s")

        try:
            done = (backfill if is_backfill else replay)(what, told)
        except (TargetError, LakeError, NoRowsError, SecretError, ValueError) as error:
            raise Failure(str(error)) from error
    rows = [(topic, partition, what.target, position) for partition, position in sorted(done.positions.items())]
    show(args, Table("pipeline-replay", ("topic", "partition", "target", "next_offset"), rows))
    if args.output == "text":
        show(args, Table("", ("rows_sent", "seconds"), [(done.rows, round(time.monotonic() - began_s, 1))]))
    return 0
