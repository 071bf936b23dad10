"""`kavka produce TOPIC`: records out of lines, JSON or files, as Kafka's console producer sends them."""

import argparse

HELP = "send records to a topic"
EXAMPLE = """\
kavka produce orders < lines.txt
kavka produce orders --key-separator : --file orders.txt --compression-codec zstd
kavka consume orders --from-beginning -e --output json | kavka produce copy --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.produce.arguments import add_produce_arguments

    add_produce_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.produce.commanding import produce

    return produce(args)
