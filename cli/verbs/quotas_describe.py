"""`kavka quotas describe`: the quotas that are set."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.quotas.arguments import add_entity_arguments
from kavka.cli.showing import add_output_arguments, show

HELP = "show the quotas that are set: all, or those of users, clients or addresses"
EXAMPLE = """kavka quotas describe --user alice --client-defaults
kavka quotas describe --entity-type users"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entity_arguments(parser)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.quotas.arguments import entity_of
    from kavka.cli.quotas.quota_report import quota_report
    from kavka.client.admin import QuotaFilter, QuotaMatch

    names, nameless = entity_of(args)
    wanted: dict[str, QuotaFilter] = {
        kind: QuotaMatch.DEFAULT if name is None else name for kind, name in names.items()
    }
    wanted |= dict.fromkeys(nameless, QuotaMatch.ANY)
    with open_admin(args) as admin:
        # As Kafka's tool: of exactly these types, unless none is given.
        found = admin.describe_client_quotas(wanted, strict=bool(wanted))
    show(args, quota_report(found))
    return 0
