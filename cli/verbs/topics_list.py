"""`kavka topics list`: the topics' names, one a line."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "list the topics' names"
EXAMPLE = "kavka topics list --exclude-internal --bootstrap-server localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="REGEX", help="only topics whose whole name matches")
    parser.add_argument("--exclude-internal", action="store_true", help="leave internal topics out")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.naming import matching
    from kavka.protocol.schema import uuid_to_text

    with open_admin(args) as admin:
        found = admin.list_topics(include_internal=not args.exclude_internal)
    names = sorted(matching(args.topic, found))
    objects = (
        {"name": name, "topic_id": uuid_to_text(found[name].topic_id), "is_internal": found[name].is_internal}
        for name in names
    )
    show(args, Report("topics-list", objects, lambda: map(escaped, names)))
    return 0
