"""Entries as a table."""

from collections.abc import Iterable

from kavka.cli.showing import Table
from kavka.client.admin import AclBinding


def acl_table(found: Iterable[AclBinding]) -> Table:
    """By resource, then by principal."""
    columns = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
    rows = [
        (
            each.resource_type.name,
            each.resource_name,
            each.pattern_type.name,
            each.principal,
            each.host,
            each.operation.name,
            each.permission.name,
        )
        for each in found
    ]
    return Table("acls", columns, sorted(rows))
