r"""`kavka groups validate-regex`: whether a consumer may subscribe by a regular expression (RE2). Asks no broker."""

import argparse

from kavka.cli.output import emit

HELP = "say whether a regular expression is one that brokers take (RE2); asks none"
EXAMPLE = "kavka groups validate-regex 'orders\\..*'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("regex", help="as SubscriptionPattern has it")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.showing import escaped
    from kavka.coordinator.regular_expressions import InvalidExpressionError, compile_expression

    try:
        compile_expression(args.regex)
    except InvalidExpressionError as error:
        raise Failure(f"{args.regex!r} is no regular expression of RE2: {error}") from error
    emit(escaped(f"{args.regex} is a regular expression of RE2"))
    return 0
