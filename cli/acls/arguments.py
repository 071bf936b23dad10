"""kafka-acls's flags, but those that say what is to be done. Loads nothing of the client."""

import argparse


def add_resource_arguments(parser: argparse.ArgumentParser) -> None:
    """What entries are about."""
    group = parser.add_argument_group("resources")
    group.add_argument("--topic", action="append", default=[], metavar="NAME", help="a topic; '*': all")
    group.add_argument("--group", action="append", default=[], metavar="NAME", help="a consumer group")
    group.add_argument("--cluster", action="store_true", help="the cluster itself")
    group.add_argument("--transactional-id", action="append", default=[], metavar="NAME", help="a transactional id")
    group.add_argument("--delegation-token", action="append", default=[], metavar="ID", help="a delegation token")
    group.add_argument("--user-principal", action="append", default=[], metavar="TYPE:NAME", help="a user's tokens")
    group.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        default="literal",
        choices=("literal", "prefixed", "any", "match"),
        help="how names are meant (default literal); any and match (all that would apply to it) do not add",
    )


def add_entry_arguments(parser: argparse.ArgumentParser) -> None:
    """Who may, or may not, do what."""
    group = parser.add_argument_group("entries")
    for verb, what in (("allow", "may"), ("deny", "may not, whatever else says so")):
        group.add_argument(
            f"--{verb}-principal", action="append", default=[], metavar="TYPE:NAME", help=f"who {what}: User:alice"
        )
        group.add_argument(
            f"--{verb}-host", action="append", default=[], metavar="HOST", help="only from there (default: anywhere)"
        )
    group.add_argument(
        "--operation", action="append", default=[], metavar="NAME", help="such as Read, Describe (default All)"
    )
    group.add_argument("--producer", action="store_true", help="all that producers of the topics need")
    group.add_argument("--consumer", action="store_true", help="all that consumers of the topics in the groups need")
    group.add_argument("--idempotent", action="store_true", help="with --producer: idempotence, too")
