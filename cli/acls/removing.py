"""Finding and removing entries by several filters."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kavka.cli.failing import tried
from kavka.client.admin import AclBinding, AclBindingFilter
from kavka.client.kafka_error import KafkaError

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin


def matching(admin: "Admin", filters: Iterable[AclBindingFilter]) -> list[AclBinding]:
    """All entries that one of the filters matches, each once."""
    found = [binding for each in filters for binding in admin.describe_acls(each)]
    return list(dict.fromkeys(found))


def remove(admin: "Admin", filters: Iterable[AclBindingFilter]) -> tuple[list[AclBinding], KafkaError | None]:
    """What is gone, and why something is not."""
    wanted = list(filters)
    answers, failure = tried(lambda: admin.delete_acls(wanted))
    rows = [row for deleted in answers.values() for row in deleted]
    kept = next((row.error for row in rows if row.error is not None), None)
    return list(dict.fromkeys(row.binding for row in rows if row.error is None)), failure or kept
