"""`kavka cluster id`: the cluster's id, as kafka-cluster cluster-id."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "show the cluster's id"
EXAMPLE = "kavka cluster id --bootstrap-server localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with open_admin(args) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    show(args, Report("cluster-id", [{"cluster_id": cluster_id}], lambda: [escaped(cluster_id or "-")]))
    return 0
