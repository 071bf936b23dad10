"""From the flags of `kavka produce` to its sending."""

import argparse
from functools import partial
from typing import Final

from kavka.cli.argument_types import merged, wrong
from kavka.cli.connecting import client_settings
from kavka.cli.failing import exit_code_of
from kavka.cli.output import complain
from kavka.cli.produce.arguments import SETTINGS
from kavka.cli.produce.input_record import InputRecord
from kavka.cli.produce.inputs import Parse, records_of, size_bytes
from kavka.cli.produce.json_lines import record_of_json
from kavka.cli.produce.line_format import LineFormat
from kavka.cli.progress import progress
from kavka.cli.unknown_settings import warned

COMMAND: Final = "kavka produce"
TIMEOUT_MS: Final = "30000"
FAILED: Final = 1


def produce(args: argparse.Namespace) -> int:
    """Reads and sends until the input ends. Raises Failure, ConfigError, KafkaError, OSError."""
    topic = _topic(args)
    parse = _with_defaults(args, _parser(args))
    total = size_bytes(args.file)
    settings = _settings(args)
    from kavka.cli.produce.sending import Sending, in_transaction
    from kavka.cli.reaching import await_broker
    from kavka.client.producer.producer import Producer

    await_broker(settings, args.timeout_ms)
    with (
        progress(f"sending to {topic}", total, is_wanted=_has_no_prompt(args)) as update,
        Producer(settings) as producer,
    ):
        sending = Sending(
            producer,
            topic,
            complain=partial(complain, COMMAND),
            update=update,
            waits=args.sync,
            partition=args.partition,
        )
        sending.open()
        found = records_of(args.file, parse, whole=args.whole_files)
        if "transactional.id" in settings:
            is_committed = in_transaction(producer, sending, found, partial(complain, COMMAND))
        else:
            is_committed = True
            try:
                sending.send_all(found)
            except (KeyboardInterrupt, OSError):
                # What was read is not lost.
                sending.flush()
                raise
    if not sending.failed:
        return 0
    if not is_committed:
        complain(COMMAND, "the transaction was aborted: no record counts")
    return FAILED if sending.first_error is None else exit_code_of(sending.first_error)


def _topic(args: argparse.Namespace) -> str:
    names = {name for name in (args.topic_name, args.topic) if name is not None}
    if len(names) != 1:
        raise wrong("name one topic")
    if args.whole_files and (not args.file or args.json):
        raise wrong("--whole-files needs --file, and does not go with --json")
    return str(names.pop())


def _parser(args: argparse.Namespace) -> Parse:
    if args.whole_files:
        return lambda data: InputRecord(None, data)
    if args.json:
        return partial(record_of_json, keeps_partition=args.partition is None)
    properties = merged(args.reader_config, "--reader-config", args.reader_properties)
    flags = {
        "key.separator": args.key_separator,
        "headers.delimiter": args.headers_delimiter,
        "headers.separator": args.headers_separator,
        "headers.key.separator": args.headers_key_separator,
        "null.marker": args.null_marker,
    }
    properties.update({name: _unescaped(text) for name, text in flags.items() if text is not None})
    if args.key_separator is not None:
        properties.setdefault("parse.key", "true")
    if args.headers_delimiter is not None or args.headers_separator is not None:
        properties.setdefault("parse.headers", "true")
    try:
        lines = LineFormat(properties)
    except ValueError as error:
        raise wrong(str(error)) from None
    return lines.record


def _unescaped(text: str) -> str:
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")


def _with_defaults(args: argparse.Namespace, parse: Parse) -> Parse:
    key = None if args.key is None else args.key.encode()
    headers = tuple((name, value.encode()) for name, value in args.header)
    if key is None and not headers:
        return parse

    def parsed(line: bytes) -> InputRecord:
        record = parse(line)
        return record._replace(key=key if record.key is None else record.key, headers=headers + record.headers)

    return parsed


def _settings(args: argparse.Namespace) -> dict[str, str]:
    settings = {
        "max.block.ms": str(args.timeout_ms or TIMEOUT_MS),
        "client.id": "kavka-produce",
        **client_settings(args),
        **warned("--producer-property", merged(args.producer_config, "--producer.config", args.producer_properties)),
    }
    if args.bootstrap_server is not None:
        settings["bootstrap.servers"] = args.bootstrap_server
    for flag, name in SETTINGS.items():
        if (given := getattr(args, flag)) is not None:
            settings[name] = str(given)
    return settings


def _has_no_prompt(args: argparse.Namespace) -> bool:
    import sys

    return bool(args.file) or not (sys.stdin is not None and sys.stdin.isatty())
