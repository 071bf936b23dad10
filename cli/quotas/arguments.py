"""kafka-configs's flags for whom quotas are. Loads nothing of the client."""

import argparse
from collections.abc import Sequence
from typing import Any, Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

KINDS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
"""Kafka's entity types and their names in the protocol."""
DEFAULT: Final = None
"""In place of a name: the type's default."""
_SHORT: Final = {"user": "user", "client": "client-id", "ip": "ip"}


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """`--user alice --client app`, or in Kafka's longer way `--entity-type users --entity-name alice ...`."""
    group = parser.add_argument_group("whom")
    for short, kind in _SHORT.items():
        group.add_argument(f"--{short}", dest=kind, metavar="NAME", help=f"the {short} of this name")
        group.add_argument(f"--{short}-defaults", action="store_true", help=f"each {short} without a quota of its own")
    group.add_argument("--entity-type", action="append", default=[], choices=KINDS, help="a type, Kafka's longer way")
    group.add_argument("--entity-name", dest="entity_names", action=_Named, metavar="NAME", help="its name")
    group.add_argument("--entity-default", dest="entity_names", action=_Named, nargs=0, help="its default")


class _Named(argparse.Action):
    """Names and defaults, in the order in which they were given: that is the types' order."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        names = [*(getattr(namespace, self.dest) or ()), values if isinstance(values, str) else DEFAULT]
        setattr(namespace, self.dest, names)


def entity_of(args: argparse.Namespace) -> tuple[dict[str, str | None], list[str]]:
    """Names by the protocol's types, None for a default; and the types that were given no name.

    Raises Failure for names without types, a type twice, or types that no quota has together.
    """
    found: dict[str, str | None] = {}
    nameless: list[str] = []
    names = args.entity_names or []
    if len(names) > len(args.entity_type):
        raise _wrong("each --entity-name and --entity-default needs an --entity-type")
    for index, kind in enumerate(KINDS[each] for each in args.entity_type):
        if kind in found or kind in nameless:
            raise _wrong(f"{kind} is there twice")
        if index < len(names):
            found[kind] = names[index]
        else:
            nameless.append(kind)
    for short, kind in _SHORT.items():
        name, is_default = getattr(args, kind), getattr(args, f"{short}_defaults")
        if name is None and not is_default:
            continue
        if kind in found or kind in nameless or (name is not None and is_default):
            raise _wrong(f"{kind} is there twice")
        found[kind] = name
    if "ip" in {*found, *nameless} and len(found) + len(nameless) > 1:
        raise _wrong("an ip's quotas are for no user and no client")
    return found, nameless


def _wrong(message: str) -> Failure:
    return Failure(message, exit_code=WRONG_USAGE)
