"""Access control entries (KIP-11), and the notices that they changed.

    /kafka-acl/TYPE/NAME                             of the resource of that name; NAME `*`: of all
    /kafka-acl-extended/prefixed/TYPE/NAME           of all whose names begin so (KIP-290)
    /kafka-acl-changes/acl_changes_             (S)  `TOPIC:NAME`, of the first kind
    /kafka-acl-extended-changes/acl_changes_    (S)  JSON, of the second

TYPE is `Topic`, `Group`, `Cluster`, `TransactionalId`, `DelegationToken` or `User`. Names stand as they are: one with a
slash has no place here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import Fields, ZnodeError, encode_json

RESOURCE_TYPES: Final = {
    "Topic": "TOPIC",
    "Group": "GROUP",
    "Cluster": "CLUSTER",
    "TransactionalId": "TRANSACTIONAL_ID",
    "DelegationToken": "DELEGATION_TOKEN",
    "User": "USER",
}
"""As paths have them, and as notices do."""
_BY_UPPER: Final = {each.upper(): name for name, notice in RESOURCE_TYPES.items() for each in (name, notice)}
PERMISSIONS: Final = ("Allow", "Deny")
OPERATIONS: Final = (
    "All",
    "Read",
    "Write",
    "Create",
    "Delete",
    "Alter",
    "Describe",
    "ClusterAction",
    "DescribeConfigs",
    "AlterConfigs",
    "IdempotentWrite",
    "CreateTokens",
    "DescribeTokens",
)
"""As nodes have them. Kafka writes them so, and reads them in any case."""
_WORDS: Final = {word.upper(): word for word in (*PERMISSIONS, *OPERATIONS)}


class ResourcePattern(NamedTuple):
    """Which resources: `type_name` is a folder's name above."""

    type_name: str
    name: str
    is_prefixed: bool = False


class AclEntry(NamedTuple):
    """One entry in Kafka's words: `User:alice`, `Allow` or `Deny`, `Read`, a host or `*`."""

    principal: str
    permission: str
    operation: str
    host: str


class AclNode:
    """What is allowed and denied of one pattern. The version counts its writes."""

    LITERAL_PARENT: Final = "/kafka-acl"
    PREFIXED_PARENT: Final = "/kafka-acl-extended/prefixed"

    @staticmethod
    def parent(*, is_prefixed: bool) -> str:
        return AclNode.PREFIXED_PARENT if is_prefixed else AclNode.LITERAL_PARENT

    @staticmethod
    def path(pattern: ResourcePattern) -> str:
        return f"{AclNode.parent(is_prefixed=pattern.is_prefixed)}/{pattern.type_name}/{pattern.name}"

    @staticmethod
    def encode(entries: Iterable[AclEntry]) -> bytes:
        acls = [
            {
                "principal": each.principal,
                "permissionType": each.permission,
                "operation": each.operation,
                "host": each.host,
            }
            for each in entries
        ]
        return encode_json({"version": 1, "acls": acls})

    @staticmethod
    def decode(path: str, data: bytes) -> frozenset[AclEntry]:
        """No data means no entries, and `DENY` is `Deny`, as in Kafka: an entry that counts there must count here."""
        if not data:
            return frozenset()
        fields = Fields.parse(path, data)
        fields.integer("version", low=1, high=1)
        entries = []
        for each in fields.objects("acls"):
            permission, operation = _word(each.text("permissionType")), _word(each.text("operation"))
            entry = AclEntry(each.text("principal"), permission, operation, each.text("host"))
            if ":" not in entry.principal:
                raise ZnodeError(path, f"no principal: {entry.principal[:80]!r}")
            entries.append(entry)
        return frozenset(entries)


class AclChange:
    """A notice that the ACLs of a pattern were written."""

    LITERAL_PARENT: Final = "/kafka-acl-changes"
    PREFIXED_PARENT: Final = "/kafka-acl-extended-changes"
    PREFIX: Final = "acl_changes_"

    @staticmethod
    def prefix(pattern: ResourcePattern) -> str:
        """Of the path of a sequential node."""
        parent = AclChange.PREFIXED_PARENT if pattern.is_prefixed else AclChange.LITERAL_PARENT
        return f"{parent}/{AclChange.PREFIX}"

    @staticmethod
    def encode(pattern: ResourcePattern) -> bytes:
        kind = RESOURCE_TYPES[pattern.type_name]
        if not pattern.is_prefixed:
            return f"{kind}:{pattern.name}".encode()
        return encode_json({"version": 1, "resourceType": kind, "name": pattern.name, "patternType": "PREFIXED"})

    @staticmethod
    def decode(path: str, data: bytes) -> ResourcePattern:
        if not path.startswith(AclChange.PREFIXED_PARENT + "/"):
            kind, colon, name = data.decode(errors="replace").partition(":")
            if not colon:
                raise ZnodeError(path, f"no resource: {data[:80]!r}")
            return ResourcePattern(_type_name(path, kind), name)
        fields = Fields.parse(path, data)
        fields.integer("version", low=1, high=1)
        pattern_type = fields.text("patternType").upper()
        if pattern_type not in ("PREFIXED", "LITERAL"):
            raise ZnodeError(path, f"no type of patterns: {pattern_type[:80]!r}")
        type_name = _type_name(path, fields.text("resourceType"))
        return ResourcePattern(type_name, fields.text("name"), pattern_type == "PREFIXED")


ACL_PATHS: Final = (
    *(
        f"{AclNode.parent(is_prefixed=is_prefixed)}/{type_name}"
        for is_prefixed in (False, True)
        for type_name in RESOURCE_TYPES
    ),
    AclChange.LITERAL_PARENT,
    AclChange.PREFIXED_PARENT,
)
"""What a broker with an authorizer makes sure of at its start."""


def _word(text: str) -> str:
    """As this broker writes it; what nobody knows stays as it is."""
    return _WORDS.get(text.upper(), text)


def _type_name(path: str, kind: str) -> str:
    type_name = _BY_UPPER.get(kind.upper())
    if type_name is None:
        raise ZnodeError(path, f"no type of resources: {kind[:80]!r}")
    return type_name
