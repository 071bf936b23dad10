"""`kavka reassign list`: the partitions that move now."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "list the partitions that move now, and the bytes that are left"
EXAMPLE = "kavka reassign list --bootstrap-server localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.reassign.cluster_view import log_dirs_of
    from kavka.cli.reassign.plan_text import ongoing_table
    from kavka.cli.reassign.progress import bytes_left

    with open_admin(args) as admin:
        ongoing = admin.list_partition_reassignments()
        log_dirs = log_dirs_of(admin, {each for row in ongoing.values() for each in row.replicas})
    show(args, ongoing_table(ongoing, bytes_left(ongoing, log_dirs)))
    return 0
