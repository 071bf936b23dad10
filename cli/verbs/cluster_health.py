"""`kavka cluster health`: the cluster at a glance; exit code 1 while something is wrong with it."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "show controller, brokers, under-replicated and offline partitions, skew; exit code 1 unless all is well"
EXAMPLE = "kavka cluster health && echo all is well"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.health import found, report

    with open_admin(args) as admin:
        health = found(admin)
    show(args, report(health))
    return 0 if health.is_well else 1
