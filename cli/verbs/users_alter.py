"""`kavka users alter`: a user's password, which is salted and hashed here: brokers never see it."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.users.arguments import add_credential_arguments

HELP = "change a user's password"
EXAMPLE = """kavka users alter --user alice --password-file secret.txt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_credential_arguments(parser)
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.users.credentials import alter

    with open_admin(args) as admin:
        alter(admin, args)
    return 0
