"""The table of requests and the rights that they need, and the ways in which somebody may have these or not."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kavka.broker.security.acl import CLUSTER, Operation, ResourceType
from kavka.protocol.api import ApiKey
from kavka.protocol.schema import Request

HERE: Final = "rights-here"
GONE: Final = "rights-gone"
TOO: Final = "rights-too"
GROUP: Final = "rights-group"
NO_GROUP: Final = "rights-nogrp"
TRANSACTION: Final = "rights-txn"
NO_TRANSACTION: Final = "rights-ntx"
TWINS: Final = {HERE: GONE, GROUP: NO_GROUP, TRANSACTION: NO_TRANSACTION}
"""What does not exist, with a name as long as that of what does."""
PREFIX: Final = "rights"
HOST: Final = "127.0.0.1"
ANOTHER_HOST: Final = "192.0.2.7"
ANY_HOST: Final = "*"
LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3
"""Numbers of the wire: PatternType and AclPermissionType."""
IMPLYING: Final = {
    (Operation.DESCRIBE, ResourceType.TOPIC): Operation.DELETE,
    (Operation.DESCRIBE, ResourceType.GROUP): Operation.READ,
    (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID): Operation.WRITE,
    (Operation.DESCRIBE, ResourceType.CLUSTER): Operation.ALTER,
    (Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC): Operation.ALTER_CONFIGS,
    (Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER): Operation.ALTER_CONFIGS,
}


class Need(NamedTuple):
    """A right that a request needs."""

    operation: Operation
    type: ResourceType
    name: str


class Acl(NamedTuple):
    """One entry, but for whose it is."""

    operation: Operation
    type: ResourceType
    name: str
    pattern_type: int = LITERAL
    permission: int = ALLOW
    host: str = ANY_HOST


class Names(NamedTuple):
    """What a request is about. The ids of topics are each broker's own."""

    topic: str = HERE
    group: str = GROUP
    transaction: str = TRANSACTION
    ids: tuple[tuple[str, bytes], ...] = ()

    def id_of(self, topic: str) -> bytes:
        return dict(self.ids)[topic]


class Row(NamedTuple):
    """A request, and the sets of rights of which each is enough."""

    name: str
    key: ApiKey
    request: Callable[[int, Names], Request]
    ways: tuple[tuple[Need, ...], ...]
    oldest: int
    newest: int
    hides: bool
    """Whether who lacks a right is not told what there is: ids are no secret."""
    undo: tuple[str, ...]
    """Topics that it creates or deletes: afterwards they are as before."""


class Grant(NamedTuple):
    """Somebody's rights, and how they came about."""

    name: str
    acls: frozenset[Acl]
    is_superuser: bool = False


ROWS: list[Row] = []


def row(
    key: ApiKey, *ways: tuple[Need, ...], versions: str = "0-99", hides: bool = True, undo: tuple[str, ...] = ()
) -> Callable[[Callable[[int, Names], Request]], Callable[[int, Names], Request]]:
    """Register a function that makes a request of a version as a row."""
    low, _, high = versions.partition("-")

    def register(request: Callable[[int, Names], Request]) -> Callable[[int, Names], Request]:
        ROWS.append(Row(request.__name__, key, request, ways, int(low), int(high or low), hides, undo))
        return request

    return register


def topic(operation: Operation, *names: str) -> tuple[Need, ...]:
    """The right to each of these topics; to both that there are if none is named."""
    return tuple(Need(operation, ResourceType.TOPIC, name) for name in names or (HERE, TOO))


def group(operation: Operation, name: str = GROUP) -> tuple[Need, ...]:
    return (Need(operation, ResourceType.GROUP, name),)


def transaction(operation: Operation) -> tuple[Need, ...]:
    return (Need(operation, ResourceType.TRANSACTIONAL_ID, TRANSACTION),)


def cluster(operation: Operation) -> tuple[Need, ...]:
    return (Need(operation, CLUSTER.type, CLUSTER.name),)


def grants(needs: tuple[Need, ...]) -> Iterator[Grant]:
    """Who has these rights, and who nearly has them."""
    exact = frozenset(Acl(*need) for need in needs)
    everything = frozenset(Acl(Operation.ALL, need.type, need.name) for need in needs)
    yield Grant("exact", exact)
    yield Grant("exact from here", frozenset(acl._replace(host=HOST) for acl in exact))
    yield Grant("another host", frozenset(acl._replace(host=ANOTHER_HOST) for acl in exact))
    yield Grant("all", everything)
    yield Grant("any name", frozenset(_of_any(acl) for acl in exact))
    yield Grant("prefixed", frozenset(_prefixed(acl) for acl in exact))
    yield Grant("another right", frozenset(acl._replace(operation=_another(need)) for acl, need in _pairs(needs)))
    implying = frozenset(
        acl._replace(operation=IMPLYING.get((need.operation, need.type), need.operation)) for acl, need in _pairs(needs)
    )
    if implying != exact:
        yield Grant("implied", implying)
    for number, need in enumerate(needs):
        denied = Acl(*need)._replace(permission=DENY)
        yield Grant(f"deny {number} over allow", everything | {denied})
        yield Grant(f"deny {number} from another host", everything | {denied._replace(host=ANOTHER_HOST)})
        yield Grant(f"deny {number} by prefix", exact | {_prefixed(denied)})
        if len(needs) > 1:
            yield Grant(f"all but {number}", exact - {Acl(*need)})


def all_grants(each: Row) -> list[Grant]:
    """Of a row, each once."""
    found = [Grant("nothing", frozenset()), Grant("superuser", frozenset(), is_superuser=True)]
    for number, needs in enumerate(each.ways):
        found += [grant._replace(name=f"{grant.name} of way {number}") for grant in grants(needs)]
        found += [others(need, needs)._replace(name=f"no {need.type.name} of way {number}") for need in needs]
    return list({(grant.acls, grant.is_superuser): grant for grant in reversed(found)}.values())[::-1]


def others(missing: Need, needs: tuple[Need, ...]) -> Grant:
    """The rights to everything of another kind than that: what a request does to other topics changes its answer."""
    return Grant("others", frozenset(Acl(*need) for need in needs if need.type is not missing.type))


def _pairs(needs: tuple[Need, ...]) -> Iterator[tuple[Acl, Need]]:
    return ((Acl(*need), need) for need in needs)


def _of_any(acl: Acl) -> Acl:
    # The cluster has one name only.
    return acl if acl.type is ResourceType.CLUSTER else acl._replace(name="*")


def _prefixed(acl: Acl) -> Acl:
    if acl.type is ResourceType.CLUSTER:
        return acl
    return acl._replace(name=acl.name[: len(PREFIX)], pattern_type=PREFIXED)


def _another(need: Need) -> Operation:
    """One that does not imply it."""
    if need.type is ResourceType.USER:
        tokens = {Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS} - {need.operation}
        return tokens.pop()
    if need.operation is not Operation.DESCRIBE:
        return Operation.DESCRIBE
    return Operation.CREATE if need.type in (ResourceType.TOPIC, ResourceType.CLUSTER) else Operation.DELETE
