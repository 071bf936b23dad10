"""`kavka users add`: a user's password, which is salted and hashed here: brokers never see it."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.users.arguments import add_credential_arguments

HELP = "give a user a password"
EXAMPLE = """kavka users add --user alice --mechanism SCRAM-SHA-512 --iterations 8192
pass show kafka/alice | kavka users add --user alice --password-file -"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_credential_arguments(parser)
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.users.credentials import add

    with open_admin(args) as admin:
        add(admin, args)
    return 0
