"""`kavka groups delete-offsets`: a group forgets what it has committed for topics that it does not read now."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.groups.choosing import add_group_argument
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "have a group forget its offsets of topics that it does not read"
EXAMPLE = "kavka groups delete-offsets --group billing --topic orders --topic payments:0,1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_argument(parser)
    parser.add_argument(
        "--topic", action="append", required=True, metavar="TOPIC[:0,1]", help="this topic; again for others"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.groups.choosing import outcomes, raise_failures
    from kavka.cli.groups.places import named_places, partitions_of

    with open_admin(args) as admin:
        partitions = partitions_of(admin, named_places(args.topic))
        deleted, failures = outcomes(partitions, lambda asked: admin.delete_group_offsets(args.group, asked))
    rows = [{"group": args.group, "topic": topic, "partition": number} for topic, number in deleted]
    lines = [escaped(f"deleted the offset of {each}") for each in deleted]
    show(args, Report("groups-delete-offsets", rows, lambda: lines))
    raise_failures("deleting offsets", failures, deleted)
    return 0
