"""Flags to entries: what `kavka acls` adds, removes and looks for, as kafka-acls understands the same flags."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, NoReturn

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourceType,
)

CLUSTER_NAME: Final = "kafka-cluster"
ANYWHERE: Final = "*"
SPECIFIC: Final = (PatternType.LITERAL, PatternType.PREFIXED)
SUPPORTED: Final = {
    ResourceType.TOPIC: "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.GROUP: "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.CLUSTER: ("CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE"),
    ResourceType.TRANSACTIONAL_ID: "DESCRIBE WRITE TWO_PHASE_COMMIT",
    ResourceType.DELEGATION_TOKEN: "DESCRIBE",
    ResourceType.USER: "CREATE_TOKENS DESCRIBE_TOKENS",
}
"""What can be done to each kind of resource, besides ALL (Kafka's AclEntry.supportedOperations)."""


class Resource(NamedTuple):
    """What entries are about, or a pattern of such."""

    type: ResourceType
    name: str
    pattern_type: PatternType


class Entry(NamedTuple):
    """Who may, or may not, do what from where."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType


def bindings(args: argparse.Namespace) -> list[AclBinding]:
    """What `acls add` adds. Raises Failure for flags that do not go together."""
    if PatternType[args.resource_pattern_type.upper()] not in SPECIFIC:
        _refuse(f"--resource-pattern-type {args.resource_pattern_type} is not for adding: literal or prefixed is")
    found = entries(args)
    if any(not rows for rows in found.values()):
        _refuse("nobody is named: give --allow-principal or --deny-principal")
    return [
        AclBinding(
            resource.type,
            resource.name,
            row.principal,
            row.operation,
            row.permission,
            row.host,
            resource.pattern_type,
        )
        for resource, rows in found.items()
        for row in rows
    ]


def removal_filters(args: argparse.Namespace) -> list[AclBindingFilter]:
    """What `acls remove` removes: without principals all there is of the resources. Raises Failure."""
    filters: list[AclBindingFilter] = []
    for resource, rows in entries(args).items():
        whole = AclBindingFilter(resource.type, resource.name, pattern_type=resource.pattern_type)
        filters += [
            whole._replace(principal=row.principal, host=row.host, operation=row.operation, permission=row.permission)
            for row in rows
        ] or [whole]
    return filters


def listing_filters(args: argparse.Namespace) -> list[AclBindingFilter]:
    """What `acls list` looks for. Raises Failure."""
    found = [
        AclBindingFilter(resource.type, resource.name, pattern_type=resource.pattern_type)
        for resource in resources(args)
    ] or [AclBindingFilter()]
    if not args.principal:
        return found
    return [each._replace(principal=name) for each in found for name in _principals(args.principal, "--principal")]


def entries(args: argparse.Namespace) -> dict[Resource, list[Entry]]:
    """The entries by resource. Raises Failure for flags that do not go together."""
    _check(args)
    named = resources(args)
    if not named:
        _refuse("nothing is named that entries are about: give --topic, --group, --cluster, ...")
    found: dict[Resource, list[Entry]] = {}
    if not args.producer and not args.consumer:
        operations = [_operation(each) for each in args.operation] or [AclOperation.ALL]
        found = {resource: _entries(args, operations) for resource in named}
    if args.producer:
        writing = [AclOperation.WRITE, AclOperation.DESCRIBE]
        for resource in named:
            if resource.type is ResourceType.TOPIC:
                found[resource] = _entries(args, [*writing, AclOperation.CREATE])
            elif resource.type is ResourceType.TRANSACTIONAL_ID:
                found[resource] = _entries(args, writing)
        if args.idempotent:
            cluster = Resource(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
            found[cluster] = _entries(args, [AclOperation.IDEMPOTENT_WRITE])
    if args.consumer:
        for resource in named:
            if resource.type is ResourceType.TOPIC:
                reading = _entries(args, [AclOperation.READ, AclOperation.DESCRIBE])
                found[resource] = list(dict.fromkeys([*found.get(resource, []), *reading]))
            elif resource.type is ResourceType.GROUP:
                found[resource] = _entries(args, [AclOperation.READ])
    for resource, rows in found.items():
        _check_operations(resource, rows)
    return found


def resources(args: argparse.Namespace) -> list[Resource]:
    """What the flags name."""
    pattern = PatternType[args.resource_pattern_type.upper()]
    named = {
        ResourceType.TOPIC: args.topic,
        ResourceType.GROUP: args.group,
        ResourceType.TRANSACTIONAL_ID: args.transactional_id,
        ResourceType.DELEGATION_TOKEN: args.delegation_token,
        ResourceType.USER: args.user_principal,
    }
    found = [Resource(kind, name.strip(), pattern) for kind, names in named.items() for name in names]
    if args.cluster and pattern is PatternType.LITERAL:
        found.append(Resource(ResourceType.CLUSTER, CLUSTER_NAME, pattern))
    return list(dict.fromkeys(found))


def _check(args: argparse.Namespace) -> None:
    if (args.producer or args.consumer) and (args.operation or args.deny_principal or args.deny_host):
        _refuse("--producer and --consumer do not go with --operation, --deny-principal or --deny-host")
    if args.producer and not args.topic:
        _refuse("--producer needs a --topic")
    if args.idempotent and not args.producer:
        _refuse("--idempotent is for --producer")
    if args.consumer and not (args.topic and args.group):
        _refuse("--consumer needs a --topic and a --group")
    if args.consumer and not args.producer and (args.cluster or args.transactional_id):
        _refuse("--consumer does not go with --cluster or --transactional-id")
    for verb in ("allow", "deny"):
        if getattr(args, f"{verb}_host") and not getattr(args, f"{verb}_principal"):
            _refuse(f"--{verb}-host needs a --{verb}-principal")


def _check_operations(resource: Resource, rows: Iterable[Entry]) -> None:
    able = SUPPORTED[resource.type].split()
    for row in rows:
        if row.operation is not AclOperation.ALL and row.operation.name not in able:
            names = ", ".join(operation_name(AclOperation[each]) for each in able)
            _refuse(f"{operation_name(row.operation)} is not done to a {resource.type.name.lower()}, only {names}, All")


def _entries(args: argparse.Namespace, operations: Sequence[AclOperation]) -> list[Entry]:
    found = []
    for verb, permission in (("allow", AclPermissionType.ALLOW), ("deny", AclPermissionType.DENY)):
        hosts = [each.strip() for each in getattr(args, f"{verb}_host")] or [ANYWHERE]
        for principal in _principals(getattr(args, f"{verb}_principal"), f"--{verb}-principal"):
            found += [Entry(principal, host, operation, permission) for operation in operations for host in hosts]
    return list(dict.fromkeys(found))


def _principals(texts: Iterable[str], flag: str) -> list[str]:
    found = []
    for text in texts:
        try:
            found.append(str(KafkaPrincipal.parse(text.strip())))
        except ValueError:
            _refuse(f"{flag} {text}: a principal is written Type:name, such as User:alice")
    return found


def operation_name(operation: AclOperation) -> str:
    """As kafka-acls has it: `DescribeConfigs`."""
    return operation.name.title().replace("_", "")


def _operation(text: str) -> AclOperation:
    by_name = {
        operation_name(each).lower(): each
        for each in AclOperation
        if each not in (AclOperation.UNKNOWN, AclOperation.ANY)
    }
    found = by_name.get(text.strip().lower().replace("_", ""))
    if found is None:
        _refuse(f"--operation {text} is none of {', '.join(map(operation_name, by_name.values()))}")
    return found


def _refuse(message: str) -> NoReturn:
    """Raises Failure: wrong usage."""
    raise Failure(message, exit_code=WRONG_USAGE)
