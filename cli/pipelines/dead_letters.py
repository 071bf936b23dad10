"""A job's dead letters: shown, and sent back."""

import argparse
import base64
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.pipelines.jobs import extra_is_there, job_of
from kavka.cli.pipelines.lakes import broker_settings
from kavka.cli.showing import Table, Value, show

if TYPE_CHECKING:
    from kavka.pipeline.jobs.dead_letters import DeadLetter
    from kavka.pipeline.running.job_file import Job

_COLUMNS = "partition", "offset", "reason", "source", "retries", "key", "value"
_ALL_COLUMNS = (
    *("partition", "offset", "timestamp_ms", "reason", "job", "source_topic", "source_partition", "source_offset"),
    *("retries", "key_base64", "value_base64"),
)


def show_letters(args: argparse.Namespace) -> int:
    """The first of them. Raises Failure, KafkaError."""
    settings, topic = _place(job_of(args))
    from kavka.pipeline.jobs.dead_letters import show as letters
    from kavka.pipeline.secret_references import SecretError

    try:
        found = list(islice(letters(settings, topic), args.limit))
    except SecretError as error:
        raise Failure(str(error)) from error
    if args.output == "json":
        show(args, Table("pipeline-deadletter-show", _ALL_COLUMNS, [_whole(each) for each in found]))
    else:
        show(args, Table("", _COLUMNS, [_row(each) for each in found]))
    return 0


def retry_and_show(args: argparse.Namespace) -> int:
    """Send them back. Raises Failure, KafkaError."""
    job = job_of(args)
    settings, topic = _place(job)
    assert job.dead_letters is not None
    from kavka.pipeline.jobs.dead_letters import retry
    from kavka.pipeline.secret_references import SecretError
    from kavka.pipeline.sending.markers import MARKER_TOPIC
    from kavka.pipeline.source.errors import OptionError
    from kavka.pipeline.source.subscription import subscription_of

    try:
        read = subscription_of({name.lower(): value for name, value in job.source.options.items()})
    except OptionError as error:
        raise Failure(f"{job.path}: source: {error}", exit_code=WRONG_USAGE) from error
    try:
        done = retry(
            settings,
            topic,
            reason=args.reason,
            target=args.to_topic,
            most_retries=args.max_retries,
            allows=read.matches,
            marker_topic=str(job.dead_letters.settings.get("marker_topic", MARKER_TOPIC)),
        )
    except SecretError as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise Failure(f"--reason: {error}", exit_code=WRONG_USAGE) from error
    show(args, Table("pipeline-deadletter-retry", ("topic", "sent", "passed_over"), [(topic, *done)]))
    return 0


def _place(job: "Job") -> tuple[dict[str, str], str]:
    """The client's settings, and the topic of dead letters. Raises Failure."""
    extra_is_there()
    topic = None if job.dead_letters is None else job.dead_letters.settings.get("topic")
    if not isinstance(topic, str):
        raise Failure(f"{job.path}: dead_letters.topic is missing", "the job has no dead letters", WRONG_USAGE)
    return broker_settings(job), topic


def _row(letter: "DeadLetter") -> Sequence[Value]:
    source = f"{letter.source_topic}-{letter.source_partition} at {letter.source_offset}"
    return (
        letter.partition,
        letter.offset,
        letter.reason,
        None if letter.source_topic is None else source,
        letter.retries,
        _text(letter.key),
        _text(letter.value),
    )


def _whole(letter: "DeadLetter") -> Sequence[Value]:
    key, value = (None if each is None else base64.b64encode(each).decode() for each in (letter.key, letter.value))
    return (*letter[:9], key, value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")
