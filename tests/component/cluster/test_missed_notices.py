"""Notices that nobody can read: in another form, another owner's, or purged. All that may have changed is read then.

It may tell of a right that was taken away, or of a user that is gone.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from kavka.cluster.acl_changes import AclChanges, AllAcls, Change
from kavka.cluster.acls import NOTHING, UNREADABLE, Acls, update_acls
from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.entity_configs import write_config
from kavka.cluster.registry.base import Create, Delete, NotPermittedError, create_path
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.cluster.znodes.acl import AclChange, AclEntry, AclNode, ResourcePattern
from kavka.cluster.znodes.config import ConfigChange, EntityConfig
from tests.support.processes import wait_until
from tests.support.registries import Clock

WAIT_S = 60
TOPIC = ResourcePattern("Topic", "orders")
PREFIX = ResourcePattern("TransactionalId", "or", is_prefixed=True)
READ = AclEntry("User:alice", "Allow", "Read", "*")
CREDENTIAL = {"SCRAM-SHA-256": "salt=..."}
ODD = [b"of a newer broker", b'{"version":9}', None]
"""None: one that this login may not read."""


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    opened = MemoryRegistry(MemoryEnsemble(Clock()))
    yield opened
    opened.close()


def hide(monkeypatch: pytest.MonkeyPatch, registry: MemoryRegistry, parent: str) -> None:
    """Have nobody read what is in that folder."""
    get_many = registry.get_many

    def guarded(paths: Sequence[str], *more: Any) -> Any:
        for path in paths:
            if path.startswith(f"{parent}/"):
                raise NotPermittedError("as an example", path)
        return get_many(paths, *more)

    monkeypatch.setattr(registry, "get_many", guarded)


def forbid_listing(monkeypatch: pytest.MonkeyPatch, registry: MemoryRegistry, folder: str) -> None:
    """Have nobody learn what is in that folder, but by its name."""
    children_of_many = registry.children_of_many

    def guarded(paths: Sequence[str]) -> Any:
        if folder in paths:
            raise NotPermittedError("as an example", folder)
        return children_of_many(paths)

    monkeypatch.setattr(registry, "children_of_many", guarded)


def everywhere(wanted: Acls) -> Change:
    """Have these be the entries of all patterns that are known."""
    return lambda acls: dict.fromkeys(acls, lambda _: wanted)


@pytest.mark.parametrize("told", ODD)
def test_a_revocation_that_nobody_can_read_of_is_heard(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, told: bytes | None
) -> None:
    known: list[AllAcls] = []
    changes = AclChanges(registry, known.append, Clock(), lambda _: None)
    changes.start()
    try:
        for pattern in (TOPIC, PREFIX):
            update_acls(registry, pattern, lambda acls: acls | {READ})
        wait_until(lambda: len(known[-1]) == 2, WAIT_S, lambda: str(known[-1]))
        if told is None:
            hide(monkeypatch, registry, AclChange.LITERAL_PARENT)
        notice = Create(AclChange.prefix(TOPIC), told or AclChange.encode(TOPIC), sequential=True)
        registry.multi([Delete(AclNode.path(TOPIC)), notice])
        wait_until(lambda: known[-1] == {PREFIX: {READ}}, WAIT_S, lambda: str(known[-1]))
    finally:
        changes.stop()


def test_a_folder_that_nobody_may_list_keeps_no_revocation_back_and_denies_until_it_can_be_listed(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kavka.cluster.acl_changes.RETRY_S", 0.01)
    known: list[AllAcls] = []
    changes = AclChanges(registry, known.append, Clock(), lambda _: None)
    changes.start()
    try:
        for pattern in (TOPIC, PREFIX):
            update_acls(registry, pattern, lambda acls: acls | {READ})
        wait_until(lambda: len(known[-1]) == 2, WAIT_S, lambda: str(known[-1]))
        children_of_many = registry.children_of_many
        forbid_listing(monkeypatch, registry, f"{AclNode.PREFIXED_PARENT}/{PREFIX.type_name}")
        registry.expire()
        denied = {ResourcePattern(PREFIX.type_name, "*"): UNREADABLE}
        wait_until(lambda: known[-1] == {TOPIC: {READ}} | denied, WAIT_S, lambda: str(known[-1]))
        update_acls(registry, TOPIC, lambda acls: frozenset())
        wait_until(lambda: known[-1] == denied, WAIT_S, lambda: str(known[-1]))
        monkeypatch.setattr(registry, "children_of_many", children_of_many)
        wait_until(lambda: known[-1] == {PREFIX: {READ}}, WAIT_S, lambda: str(known[-1]))
    finally:
        changes.stop()


@pytest.mark.parametrize("wanted", [NOTHING, frozenset({READ})])
def test_what_denies_in_place_of_a_folder_that_cannot_be_listed_is_not_taken_away_with_what_is_known_of_it(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, wanted: Acls
) -> None:
    monkeypatch.setattr("kavka.cluster.acl_changes.RETRY_S", 0.01)
    known: list[AllAcls] = []
    all_topics = ResourcePattern("Topic", "*")
    changes = AclChanges(registry, known.append, Clock(), lambda _: None)
    changes.start()
    try:
        update_acls(registry, TOPIC, lambda acls: acls | {AclEntry("User:eve", "Deny", "All", "*")})
        wait_until(lambda: TOPIC in known[-1], WAIT_S, lambda: str(known[-1]))
        forbid_listing(monkeypatch, registry, f"{AclNode.LITERAL_PARENT}/Topic")
        registry.expire()
        wait_until(lambda: known[-1] == {all_topics: UNREADABLE}, WAIT_S, lambda: str(known[-1]))
        before = len(known)
        has_settled = threading.Event()
        changes.change(everywhere(wanted)).then(lambda _: has_settled.set())
        assert has_settled.wait(WAIT_S)
        assert known[before:] == []
    finally:
        changes.stop()


@contextmanager
def users(registry: MemoryRegistry) -> Iterator[tuple[dict[str, dict[str, str]], Callable[[], None]]]:
    """Those that a broker knows of, by their entities; and what loses its session."""
    known: dict[str, dict[str, str]] = {}
    listener = ConfigNotificationListener(registry, lambda *_: None, lambda *_: None, Clock(), known.__setitem__)
    create_path(registry, ConfigChange.PARENT)
    listener.start()
    try:
        write_config(registry, "users/alice", CREDENTIAL)
        wait_until(lambda: known == {"users/alice": CREDENTIAL}, WAIT_S, lambda: str(known))
        yield known, registry.expire
    finally:
        listener.stop()


@pytest.mark.parametrize("told", ODD)
def test_a_user_s_end_that_nobody_can_read_of_is_heard(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, told: bytes | None
) -> None:
    with users(registry) as (known, _):
        if told is None:
            hide(monkeypatch, registry, ConfigChange.PARENT)
        registry.set(EntityConfig.path("users/alice"), EntityConfig.encode({}))
        registry.create(ConfigChange.PREFIX, told or ConfigChange.encode("users/alice"), sequential=True)
        wait_until(lambda: known == {"users/alice": {}}, WAIT_S, lambda: str(known))


def test_a_user_that_came_after_the_start_and_went_while_the_session_was_lost_is_gone(registry: MemoryRegistry) -> None:
    with users(registry) as (known, lose_session):
        registry.delete(EntityConfig.path("users/alice"))
        lose_session()
        wait_until(lambda: known == {"users/alice": {}}, WAIT_S, lambda: str(known))
