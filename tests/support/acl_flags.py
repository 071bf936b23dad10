"""What administrators tell kafka-acls, and `kavka acls` likewise, and what the first prints of it."""

import re
from typing import Final

GIVEN: Final = {
    ("--allow-principal", "User:alice", "--producer", "--idempotent", "--topic", "orders"): 4,
    ("--allow-principal", "User:bob", "--allow-host", "127.0.0.1", "--consumer", "--topic", "o", "--group", "g"): 3,
    (
        *("--deny-principal", "User:eve", "--operation", "Alter"),
        *("--topic", "or", "--resource-pattern-type", "prefixed"),
    ): 1,
    ("--allow-principal", "User:carol", "--cluster", "--operation", "ClusterAction", "--operation", "Create"): 2,
    ("--allow-principal", "User:dave", "--transactional-id", "t", "--user-principal", "User:x"): 2,
}
"""Flags, and how many ACLs they make."""
COUNT: Final = sum(GIVEN.values())
FILTERS: Final = {
    ("--topic", "orders"): 3,
    ("--topic", "orders", "--resource-pattern-type", "match"): 4,
    ("--topic", "or", "--resource-pattern-type", "any"): 1,
    ("--group", "g", "--cluster"): 4,
    ("--principal", "User:carol"): 2,
}
"""Flags of `--list`, and how many of these ACLs they show."""


def listed(text: str) -> set[tuple[str, ...]]:
    """What kafka-acls --list prints: resource type, name, pattern type, principal, host, operation, permission."""
    found: set[tuple[str, ...]] = set()
    for block in re.split("Current ACLs for resource `ResourcePattern", text)[1:]:
        kind, name, pattern = re.findall(r"resourceType=(\w+), name=([^,]+), patternType=(\w+)", block)[0]
        entries = re.findall(r"principal=([^,]+), host=([^,]+), operation=(\w+), permissionType=(\w+)", block)
        found |= {(kind, name, pattern, *entry) for entry in entries}
    return found
