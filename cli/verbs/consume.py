"""`kavka consume TOPIC ...`: records, as Kafka's console consumer and kcat show them."""

import argparse

HELP = "read records of topics"
EXAMPLE = """\
kavka consume orders --from-beginning --exit-at-end --format '%p %o %k %v'
kavka consume orders --group billing --output json
kavka consume __consumer_offsets --from-beginning"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.consume.arguments import add_consume_arguments

    add_consume_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.consume.commanding import consume

    return consume(args)
