"""Setting and deleting settings and quotas."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kavka.cli.configs.describing import check_entity, is_own, quota_key, quota_value, resource_of
from kavka.cli.configs.entities import QUOTA_TYPES, Entity
from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.settings_text import file_settings
from kavka.cli.showing import Value
from kavka.client.admin.types.configs import AlterConfigOp, AlterConfigOpType

if TYPE_CHECKING:
    from kavka.client import Admin


def changes_of(args: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    """What is to be set, and what deleted. Raises Failure."""
    added: dict[str, str] = {}
    if args.add_config_file is not None:
        added.update(file_settings("--add-config-file", args.add_config_file))
    for each in args.add_config:
        added.update(each)
    deleted = [name for each in args.delete_config for name in each]
    if not added and not deleted:
        raise Failure("nothing is to be changed", "give --add-config or --delete-config", WRONG_USAGE)
    both = sorted(added.keys() & deleted)
    if both:
        raise Failure(f"{', '.join(both)} cannot be set and deleted at once", exit_code=WRONG_USAGE)
    return added, deleted


def alter(
    admin: "Admin", entities: Sequence[Entity], added: dict[str, str], deleted: Sequence[str], *, dry_run: bool
) -> list[Sequence[Value]]:
    """A row for each setting that was changed. Raises Failure, KafkaError."""
    if any(entity.name is None for entity in entities):
        raise Failure("whose settings? one is to be named", "give --entity-name or --entity-default", WRONG_USAGE)
    if entities[0].type in QUOTA_TYPES:
        _alter_quotas(admin, entities, added, deleted, dry_run=dry_run)
    else:
        _alter_configs(admin, entities[0], added, deleted, dry_run=dry_run)
    kinds = ",".join(entity.type for entity in entities)
    names = ",".join(entity.name or "" for entity in entities)
    return [
        *((kinds, names, name, value) for name, value in added.items()),
        *((kinds, names, name, None) for name in deleted),
    ]


def _alter_configs(
    admin: "Admin", entity: Entity, added: dict[str, str], deleted: Sequence[str], *, dry_run: bool
) -> None:
    check_entity(admin, entity)
    resource = resource_of(entity)
    if deleted:
        entries = admin.describe_configs([resource])[resource]
        unset = [name for name in deleted if name not in entries or not is_own(resource, entries[name])]
        if unset:
            # A broker would take it for done: the name may be misspelt.
            raise Failure(f"{', '.join(unset)}: not set for {entity.type} {entity.name or '<default>'}")
    changes = [AlterConfigOp(name, value) for name, value in added.items()]
    changes += [AlterConfigOp(name, None, AlterConfigOpType.DELETE) for name in deleted]
    admin.incremental_alter_configs({resource: changes}, validate_only=dry_run)


def _alter_quotas(
    admin: "Admin", entities: Sequence[Entity], added: dict[str, str], deleted: Sequence[str], *, dry_run: bool
) -> None:
    from kavka.client.admin.types.quotas import ClientQuotaEntity

    credentials = [name for name in (*added, *deleted) if name.upper().startswith("SCRAM-")]
    if credentials:
        raise Failure(f"{', '.join(credentials)}: no quota", "credentials are set by kavka users", WRONG_USAGE)
    changes: dict[str, float | None] = {name: quota_value(name, value) for name, value in added.items()}
    changes.update(dict.fromkeys(deleted))
    entity = ClientQuotaEntity(frozenset(quota_key(entities).items()))
    admin.alter_client_quotas({entity: changes}, validate_only=dry_run)
