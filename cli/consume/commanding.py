"""From the flags of `kavka consume` to its reading."""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.cli.argument_types import merged, wrong
from kavka.cli.connecting import client_settings
from kavka.cli.consume.arguments import PRINTED
from kavka.cli.consume.formatters import Show, Wanted, formatter_of
from kavka.cli.consume.places import EARLIEST, LATEST, Place
from kavka.cli.consume.reading import Limits, Reading
from kavka.cli.consume.sources import Alone, Member, Source, Topics
from kavka.cli.consume.stops import Stops, Until
from kavka.cli.escaping import safe_bytes
from kavka.cli.output import complain, emit_bytes
from kavka.cli.progress import Update, amount, has_terminal, progress
from kavka.cli.unknown_settings import warned

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer
    from kavka.client.consumer.records import ConsumerRecord

COMMAND: Final = "kavka consume"
CLOSE_MS: Final = 5_000.0
TIMEOUT_MS: Final = "30000"


def consume(args: argparse.Namespace) -> int:
    """Reads and shows until the end. Raises Failure, ConfigError, KafkaError, OutputError."""
    topics = _topics(args)
    show = _formatter(args)
    settings = _settings(args)
    from kavka.cli.reaching import await_broker
    from kavka.client.consumer.consumer import Consumer

    await_broker(settings, args.timeout_ms)

    until = Until(args.until_offset, args.until_time, args.exit_at_end)
    limits = Limits(args.max_messages, args.timeout_ms)
    consumer = Consumer(settings)
    try:
        with progress(f"reading {_named(topics)}", args.max_messages, is_wanted=not _is_terminal()) as update:
            stops = Stops(consumer, until)
            writing = _Writing(show, update)
            reading = Reading(
                consumer,
                _source(args, consumer, topics, stops, until),
                stops,
                writing.write,
                limits,
                _now_ms,
                has_ends=until.is_set,
            )
            reading.run()
    finally:
        consumer.close(CLOSE_MS)
    if has_terminal():
        print(f"Processed a total of {reading.count} messages", file=sys.stderr)
    return 0


class _Writing:
    """Writes records as they come, all of a poll at once."""

    def __init__(self, show: Show, update: Update) -> None:
        self._show: Final = show
        self._update: Final = update
        self._began_s: Final = time.monotonic()
        self._count = self._size_bytes = 0

    def write(self, records: "Sequence[ConsumerRecord]") -> None:
        """Raises OutputError."""
        data = b"".join(map(self._show, records))
        emit_bytes(data)
        self._count += len(records)
        self._size_bytes += len(data)
        self._update(self._count, amount(self._count, self._size_bytes, time.monotonic() - self._began_s))


def _topics(args: argparse.Namespace) -> Topics:
    names = tuple(dict.fromkeys([*args.topics, *args.topic]))
    if bool(names) == (args.include is not None):
        raise wrong("name topics, or give --include REGEX" if not names else "--include stands instead of topics")
    if args.group is not None:
        for flag, value in (
            ("--partition", args.partition),
            ("--offset", args.offset),
            ("--from-time", args.from_time),
        ):
            if value is not None:
                raise wrong(
                    f"{flag} is for reading alone: a group's members read what the group gives, and where it was"
                )
    pattern = None
    if args.include is not None:
        try:
            pattern = re.compile(args.include.replace(",", "|"))
        except re.error as error:
            raise wrong(f"--include {args.include}: {error}") from None
    return Topics(names, pattern, None if args.partition is None else tuple(args.partition))


def _named(topics: Topics) -> str:
    return ", ".join(topics.names) if topics.pattern is None else topics.pattern.pattern


def _formatter(args: argparse.Namespace) -> Show:
    if args.format is not None and (args.output == "json" or args.formatter is not None):
        raise wrong("--format is a format of its own: --output json and --formatter do not go with it")
    properties = merged(args.formatter_config, "--formatter-config", args.formatter_properties)
    for part in PRINTED:
        if getattr(args, f"print_{part}"):
            properties[f"print.{part}"] = "true"
    if args.no_value:
        properties["print.value"] = "false"
    for name in ("key.separator", "key.deserializer", "value.deserializer"):
        if (given := getattr(args, name.replace(".", "_"))) is not None:
            properties[name] = given
    wanted = Wanted(args.format, args.output == "json", args.formatter, properties)
    try:
        return formatter_of(wanted, safe_bytes if _is_terminal() else _as_it_is)
    except ValueError as error:
        raise wrong(str(error)) from None


def _settings(args: argparse.Namespace) -> dict[str, str]:
    settings = {
        "default.api.timeout.ms": TIMEOUT_MS,
        "allow.auto.create.topics": "false",
        "client.id": "kavka-consume",
        **client_settings(args),
        **warned("--consumer-property", merged(args.consumer_config, "--consumer.config", args.consumer_properties)),
        "enable.auto.commit": "false",
    }
    if args.bootstrap_server is not None:
        settings["bootstrap.servers"] = args.bootstrap_server
    if args.isolation_level is not None:
        settings["isolation.level"] = args.isolation_level
    if args.skip_message_on_error:
        settings["kavka.skip.corrupt.batches"] = "true"
    if args.group is not None:
        settings["group.id"] = args.group
        if args.from_beginning:
            settings["auto.offset.reset"] = "earliest"
    else:
        settings.pop("group.id", None)
        # Where it begins is looked up; what retention deletes under way must not make it leap to the end.
        settings.setdefault("auto.offset.reset", "earliest")
    return settings


def _source(args: argparse.Namespace, consumer: "Consumer", topics: Topics, stops: Stops, until: Until) -> Source:
    if args.group is not None:
        return Member(consumer, topics, stops, partial(complain, COMMAND))
    begin = args.offset if args.offset is not None else Place(name=EARLIEST if args.from_beginning else LATEST)
    if args.from_time is not None:
        begin = Place(time_ms=args.from_time)
    return Alone(consumer, topics, begin, stops, follows=not until.at_end)


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _as_it_is(data: bytes) -> bytes:
    return data


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
