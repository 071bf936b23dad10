"""Compiled decisions are those of AclAuthorizer's rules, taken word for word (tests/support/acl_cases.py)."""

import gc
import random
import sys

import pytest

from kavka.broker.security.acl import CLUSTER, Operation, Resource, ResourceType, group, topic
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.security.authorizer.names import OPERATION_CODES, PERMISSION_CODES
from kavka.broker.security.authorizer.rights import MOST_REMEMBERED, ClientRights
from kavka.broker.security.authorizer.snapshot import AclSnapshot
from kavka.cluster.acls import UNREADABLE
from kavka.cluster.znodes.acl import OPERATIONS, PERMISSIONS, AclEntry, ResourcePattern
from tests.support.acl_cases import allows, allows_some, random_acls, random_question

FETCH = 1
HOST = "10.0.0.7"


def authorizer(*acls: tuple[ResourcePattern, AclEntry], super_users: tuple[str, ...] = ()) -> AclAuthorizer:
    made = AclAuthorizer(super_users, lambda: None)
    made.swap({pattern: frozenset(each for at, each in acls if at == pattern) for pattern, _ in acls})
    return made


def on_topic(name: str, principal: str, operation: str, permission: str = "Allow") -> tuple[ResourcePattern, AclEntry]:
    return ResourcePattern("Topic", name), AclEntry(principal, permission, operation, "*")


def may(rights: ClientRights, operation: Operation, resource: Resource) -> bool:
    return rights.allows(operation, resource, FETCH)


@pytest.mark.parametrize("allows_unmentioned", [False, True])
def test_decisions_are_those_of_the_rules_while_acls_change(allows_unmentioned: bool) -> None:
    chance = random.Random(7)
    decides = AclAuthorizer((), lambda: None, allows_unmentioned=allows_unmentioned)
    kept: dict[tuple[str, str], ClientRights] = {}
    for _ in range(120):
        acls = random_acls(chance)
        decides.swap(acls)
        for _ in range(60):
            asked = random_question(chance)
            rights = kept.setdefault((asked.principal, asked.host), decides.rights(asked.principal, asked.host))
            expected = allows(acls, asked, allows_unmentioned=allows_unmentioned)
            assert may(rights, asked.operation, asked.resource) is expected, (acls, asked)
            assert rights.unaudited(asked.operation, asked.resource.type)(asked.resource.name) is expected
            some = allows_some(acls, asked, allows_unmentioned=allows_unmentioned)
            assert rights.allows_on_any(asked.operation, asked.resource.type, FETCH) is some, (acls, asked)


def test_nodes_have_the_words_that_decisions_go_by() -> None:
    assert set(OPERATIONS) == OPERATION_CODES.keys()
    assert set(PERMISSIONS) == PERMISSION_CODES.keys()


def test_a_super_user_is_one_by_type_and_name_and_may_do_what_is_denied() -> None:
    decides = authorizer(on_topic("*", "User:*", "All", "Deny"), super_users=("User:root",))

    root, other = decides.rights("User:root", HOST), decides.rights("Group:root", HOST)

    assert may(root, Operation.WRITE, topic("t"))
    assert may(root, Operation.ALTER, CLUSTER)
    assert root.allows_on_any(Operation.WRITE, ResourceType.TOPIC, FETCH)
    assert not may(other, Operation.WRITE, topic("t"))
    assert not other.allows_on_any(Operation.WRITE, ResourceType.TOPIC, FETCH)


def test_a_connection_s_rights_follow_each_change() -> None:
    decides = authorizer(on_topic("t", "User:alice", "Read"))
    alice = decides.rights("User:alice", HOST)
    assert [may(alice, each, topic("t")) for each in (Operation.READ, Operation.DESCRIBE)] == [True, True]

    decides.swap({})
    assert not may(alice, Operation.READ, topic("t"))
    assert not alice.unaudited(Operation.DESCRIBE, ResourceType.TOPIC)("t")

    decides.swap({ResourcePattern("Topic", "t"): UNREADABLE})
    assert not may(alice, Operation.READ, topic("t"))


def test_every_change_is_told_once_it_counts() -> None:
    seen: list[bool] = []
    decides = AclAuthorizer((), lambda: seen.append(may(alice, Operation.READ, topic("t"))))
    alice = decides.rights("User:alice", HOST)

    pattern, entry = on_topic("t", "User:alice", "Read")
    decides.swap({pattern: frozenset({entry})})
    decides.swap({})

    assert seen == [True, False]


def test_clients_that_ask_no_more_do_not_keep_all_acls_of_the_moment_when_they_did() -> None:
    decides = authorizer(on_topic("t", "User:alice", "Read"))
    kept = []
    for number in range(20):
        decides.swap(
            {ResourcePattern("Topic", f"mark-{number}"): frozenset(), ResourcePattern("Topic", "t"): UNREADABLE}
        )
        kept.append(decides.rights("User:alice", HOST))
        may(kept[-1], Operation.READ, topic("t"))
    gc.collect()

    alive = [each for each in gc.get_objects() if isinstance(each, AclSnapshot)]
    ours = [each for each in alive if any(pattern.name.startswith("mark-") for pattern in each.acls)]
    assert ours == [decides.snapshot]


def test_what_a_connection_remembers_is_bounded_whatever_it_asks_for() -> None:
    decides = authorizer(on_topic("t", "User:alice", "Read"), (ResourcePattern("Group", "g"), UNKNOWN_OPERATION))
    alice = decides.rights("User:alice", HOST)
    known = alice._known

    for number in range(100_000):
        may(alice, Operation.READ, topic(f"t-{number}"))
    for number in range(100):
        may(alice, Operation.READ, group(str(number) * 10_000))

    assert alice._known is known
    assert len(known.decisions) <= MOST_REMEMBERED
    assert sum(sys.getsizeof(resource.name) for _, resource in known.decisions) < MOST_REMEMBERED * 400
    assert len(decides._compiled) == 2


UNKNOWN_OPERATION = AclEntry("User:alice", "Allow", "TwoPhaseCommit", "*")


def test_an_operation_that_nobody_knows_allows_nothing_and_keeps_the_resource_from_being_open_to_all() -> None:
    decides = AclAuthorizer((), lambda: None, allows_unmentioned=True)
    decides.swap({ResourcePattern("Group", "g"): frozenset({UNKNOWN_OPERATION})})
    alice = decides.rights("User:alice", HOST)

    assert not may(alice, Operation.READ, group("g"))
    assert may(alice, Operation.READ, group("h"))


def test_principals_and_hosts_that_no_acl_names_share_what_was_compiled() -> None:
    decides = authorizer(on_topic("t", "User:*", "Read"))

    for number in range(50):
        stranger = decides.rights(f"User:{number}", f"10.0.1.{number}")
        assert may(stranger, Operation.READ, topic("t"))

    assert len(decides._compiled) == 1
