"""`kavka records delete`: delete the records before an offset, as Kafka's DeleteRecordsCommand."""

import argparse
from pathlib import Path

from kavka.cli.argument_types import number, wrong
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "delete the records before an offset"
EXAMPLE = """\
kavka records delete --topic visits --partition 0 --offset 42
kavka records delete --offset-json-file offsets.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--offset-json-file",
        type=Path,
        metavar="FILE",
        help='{"partitions": [{"topic": "visits", "partition": 0, "offset": 42}], "version": 1}',
    )
    parser.add_argument("--topic", metavar="TOPIC")
    parser.add_argument("--partition", type=number(0, 2**31 - 1), metavar="N")
    parser.add_argument("--offset", type=number(-1), metavar="OFFSET", help="records before it go; -1: all there are")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure, tried
    from kavka.cli.records.offset_file import read_offsets
    from kavka.client.topic_partition import TopicPartition

    single = (args.topic, args.partition, args.offset)
    if (args.offset_json_file is None) == (None in single) or (args.offset_json_file and single != (None,) * 3):
        raise wrong("give --offset-json-file FILE, or --topic, --partition and --offset")
    if args.offset_json_file is None:
        offsets = {TopicPartition(args.topic, args.partition): args.offset}
    else:
        try:
            offsets = read_offsets(args.offset_json_file)
        except ValueError as error:
            raise Failure(f"{args.offset_json_file}: {error}") from error
    with open_admin(args) as admin:
        done, failure = tried(lambda: admin.delete_records(offsets))
    rows = [(each.topic, each.partition, low) for each, low in sorted(done.items())]
    show(args, Table("records-delete", ("topic", "partition", "low_watermark"), rows))
    if failure is not None:
        raise failure
    return 0
