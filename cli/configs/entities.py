"""Whose settings are meant: `--entity-type topics --entity-name orders`, or `--topic orders`, as in Kafka's tool.

Imports no client: a command line that is wrong is refused at once.
"""

import argparse
from typing import Any, Final, NamedTuple

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

QUOTA_TYPES: Final = ("users", "clients", "ips")
RESOURCE_TYPES: Final = ("topics", "brokers", "broker-loggers", "client-metrics", "groups")
_SHORT: Final = {
    "topic": "topics",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "client-metrics": "client-metrics",
    "group": "groups",
    "client": "clients",
    "user": "users",
    "ip": "ips",
}
_WITH_DEFAULTS: Final = {"broker": "brokers", "client": "clients", "user": "users", "ip": "ips"}


class Entity(NamedTuple):
    """One of a type; an empty name stands for its type's default, None for all of the type."""

    type: str
    name: str | None


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of kafka-configs by which `entities_of` goes."""
    group = parser.add_argument_group("whose settings")
    group.add_argument("--entity-type", action="append", default=[], choices=(*RESOURCE_TYPES, *QUOTA_TYPES))
    group.add_argument("--entity-name", action="append", dest="entity_names", default=[], metavar="NAME")
    group.add_argument(
        "--entity-default", action="append_const", const="", dest="entity_names", help="the default of the type"
    )
    for short, kind in _SHORT.items():
        group.add_argument(
            f"--{short}",
            action=_Short,
            const=kind,
            dest="entities",
            metavar="ID" if short.startswith("broker") else "NAME",
            help=f"--entity-type {kind} --entity-name",
        )
    for short, kind in _WITH_DEFAULTS.items():
        entity = Entity(kind, "")
        group.add_argument(
            f"--{short}-defaults",
            action="append_const",
            const=entity,
            dest="entities",
            help=f"--entity-type {kind} --entity-default",
        )
    parser.set_defaults(entities=None)


class _Short(argparse.Action):
    """`--topic NAME`: an entity of the type that is the action's `const`."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, **options)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), Entity(str(self.const), str(values))])


def entities_of(args: argparse.Namespace) -> list[Entity]:
    """What the flags name: one, or several whose quotas are looked for together. Raises Failure."""
    entities: list[Entity] = list(args.entities or ())
    names: list[str | None] = list(args.entity_names)
    if len(names) > len(args.entity_type):
        raise _wrong("there are more of --entity-name and --entity-default than of --entity-type")
    names += [None] * (len(args.entity_type) - len(names))
    entities += [Entity(kind, name) for kind, name in zip(args.entity_type, names, strict=True)]
    if not entities:
        raise _wrong("whose settings? name a --topic, --broker, --group, ... or an --entity-type")
    kinds = [entity.type for entity in entities]
    if len(set(kinds)) < len(kinds) or (len(kinds) > 1 and set(kinds) != {"users", "clients"}):
        raise _wrong(f"{' and '.join(kinds)} cannot be named together: users and clients can")
    for kind, name in entities:
        if kind in ("brokers", "broker-loggers") and name and not (name.isascii() and name.isdecimal()):
            raise _wrong(f"{name} is no broker's id, which is a number")
        if kind in ("topics", "groups", "client-metrics", "broker-loggers") and name == "":
            raise _wrong(f"{kind} have no default")
    return entities


def _wrong(message: str) -> Failure:
    return Failure(message, exit_code=WRONG_USAGE)
