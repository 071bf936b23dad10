"""ACLs in the tree: in Kafka's bytes, written on condition, heard of by every broker."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kavka.cluster import acl_changes
from kavka.cluster.acl_changes import AclChanges, AllAcls, Outcome
from kavka.cluster.acls import NOTHING, UNREADABLE, Acls, AclUpdate, read_all_acls, update_acls
from kavka.cluster.notices import NOTICE_LIFE_MS
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import (
    Create,
    InvalidNodeError,
    NotPermittedError,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    SessionEvent,
    SetData,
    create_path,
)
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.cluster.znodes.acl import AclChange, AclEntry, AclNode, ResourcePattern
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.processes import wait_until
from tests.support.registries import Clock

WAIT_S = 60
TOPIC = ResourcePattern("Topic", "orders")
PREFIX = ResourcePattern("TransactionalId", "or", is_prefixed=True)
READ = AclEntry("User:alice", "Allow", "Read", "*")
NO_WRITE = AclEntry("User:bob", "Deny", "Write", "127.0.0.1")
SOME = frozenset({READ})


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    opened = MemoryRegistry(MemoryEnsemble(Clock()))
    yield opened
    opened.close()


class Broker:
    """One broker's knowledge of the ACLs."""

    def __init__(self, registry: Registry, clock: Clock | None = None) -> None:
        self.acls: AllAcls = {}
        self.deaths: list[BaseException] = []
        self.changes = AclChanges(registry, self._note, clock or Clock(), self.deaths.append)

    def _note(self, acls: AllAcls) -> None:
        self.acls = acls

    def __enter__(self) -> "Broker":
        self.changes.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.changes.stop()
        assert self.deaths == []

    def write(self, pattern: ResourcePattern, update: AclUpdate) -> Outcome:
        """What became of it; by then it counts here."""
        outcome: Outcome = settled(self.changes.change(lambda _: {pattern: update}))[pattern]
        return outcome


def settled(promise: Promise[Any]) -> Any:
    done = threading.Event()
    outcome: list[Any] = []

    def note(response: Any, error: BaseException | None) -> None:
        outcome.append(error or response)
        done.set()

    promise.watch(note)
    assert done.wait(WAIT_S)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def adding(*entries: AclEntry) -> AclUpdate:
    return lambda acls: acls | frozenset(entries)


def nothing(_: Acls) -> Acls:
    return NOTHING


def children(registry: Registry, path: str) -> list[bytes]:
    return [registry.get(f"{path}/{name}")[0] for name in registry.children(path)]


def test_what_is_written_lies_where_kafka_has_it_in_its_bytes_with_its_notices(registry: Registry) -> None:
    with Broker(registry) as broker:
        assert broker.write(TOPIC, adding(READ)) == (NOTHING, SOME)
        assert broker.acls == {TOPIC: {READ}}
        assert broker.write(PREFIX, adding(NO_WRITE)) == (NOTHING, frozenset({NO_WRITE}))
        assert broker.acls == {TOPIC: {READ}, PREFIX: {NO_WRITE}}

    entry = b'{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"}'
    assert registry.get("/kafka-acl/Topic/orders")[0] == b'{"version":1,"acls":[' + entry + b"]}"
    entry = b'{"principal":"User:bob","permissionType":"Deny","operation":"Write","host":"127.0.0.1"}'
    at = "/kafka-acl-extended/prefixed/TransactionalId/or"
    assert registry.get(at)[0] == b'{"version":1,"acls":[' + entry + b"]}"
    assert children(registry, "/kafka-acl-changes") == [b"TOPIC:orders"]
    assert children(registry, "/kafka-acl-extended-changes") == [
        b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"or","patternType":"PREFIXED"}'
    ]


def test_a_broker_follows_what_others_write_and_begins_with_what_there_is(registry: Registry) -> None:
    with Broker(registry) as one:
        one.write(TOPIC, adding(READ))
        with Broker(registry) as two:
            assert two.acls == {TOPIC: {READ}}
            one.write(PREFIX, adding(READ, NO_WRITE))
            wait_until(lambda: two.acls == one.acls, WAIT_S, lambda: str(two.acls))
            two.write(TOPIC, nothing)
            wait_until(lambda: one.acls == {PREFIX: {READ, NO_WRITE}}, WAIT_S, lambda: str(one.acls))
    assert registry.children("/kafka-acl/Topic") == []


def test_who_asks_for_one_change_after_the_other_does_not_keep_others_from_being_heard(memory: MemoryRegistry) -> None:
    with Broker(memory) as broker:
        heard: list[bool] = []
        more: list[Promise[Any]] = []

        def ask(_: AllAcls) -> dict[ResourcePattern, AclUpdate]:
            heard.append(TOPIC in broker.acls)
            if len(heard) == 1:
                update_acls(memory, TOPIC, adding(READ))
            if len(heard) < 50:
                more.append(broker.changes.change(ask))
            return {}

        settled(broker.changes.change(ask))
        wait_until(lambda: len(heard) == 50, WAIT_S, lambda: str(heard))
        assert heard == [False] + [True] * 49


def test_acls_that_may_not_be_read_deny_everything_and_keep_no_others_from_being_heard(
    memory: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "/kafka-acl/Topic/hidden"
    with Broker(memory) as broker:
        get_many = memory.get_many

        def guarded(paths: Sequence[str], *more: Any) -> Any:
            if hidden in paths:
                raise NotPermittedError("no", hidden)
            return get_many(paths, *more)

        pattern = ResourcePattern("Topic", "hidden")
        update_acls(memory, pattern, adding(READ))
        wait_until(lambda: pattern in broker.acls, WAIT_S, lambda: str(broker.acls))
        monkeypatch.setattr(memory, "get_many", guarded)
        memory.multi(
            [
                SetData(hidden, AclNode.encode([NO_WRITE]), 0),
                Create(AclChange.prefix(pattern), AclChange.encode(pattern), sequential=True),
            ]
        )
        update_acls(memory, TOPIC, adding(READ))
        wait_until(lambda: broker.acls == {pattern: UNREADABLE, TOPIC: {READ}}, WAIT_S, lambda: str(broker.acls))


def test_what_changes_nothing_leaves_no_notice(registry: Registry) -> None:
    with Broker(registry) as broker:
        broker.write(TOPIC, adding(READ))
        assert broker.write(TOPIC, adding(READ)) == (SOME, SOME)
        assert broker.write(PREFIX, nothing) == (NOTHING, NOTHING)
    assert len(registry.children("/kafka-acl-changes")) == 1
    assert registry.children("/kafka-acl-extended-changes") == []


def test_writers_who_race_lose_nothing(registry: Registry) -> None:
    def write(writer: int) -> None:
        for number in range(10):
            update_acls(registry, TOPIC, adding(AclEntry(f"User:{writer}-{number}", "Allow", "Read", "*")))
            if number % 3 == 2:
                update_acls(registry, TOPIC, lambda acls: acls - {AclEntry(f"User:{writer}-1", "Allow", "Read", "*")})

    with Broker(registry) as broker:
        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for each in writers:
            each.start()
        for each in writers:
            each.join(WAIT_S)
        expected = {f"User:{writer}-{number}" for writer in range(4) for number in range(10) if number != 1}

        def have_all() -> bool:
            return {each.principal for each in broker.acls.get(TOPIC, ())} == expected

        wait_until(have_all, WAIT_S, lambda: str(broker.acls))


@pytest.mark.parametrize(
    "data", [b"{", b'{"version":2,"acls":[]}', b'{"version":1,"acls":[{"principal":"alice"}]}', b'{"version":1}']
)
def test_acls_that_cannot_be_read_deny_everything_until_all_of_them_are_removed(
    memory: MemoryRegistry, data: bytes
) -> None:
    create_path(memory, "/kafka-acl/Topic/orders")
    memory.set("/kafka-acl/Topic/orders", data)
    with Broker(memory) as broker:
        assert broker.acls == {TOPIC: UNREADABLE}
        refused = broker.write(TOPIC, adding(READ))
        assert isinstance(refused, BrokerError)
        assert refused.code is ErrorCode.INVALID_REQUEST
        assert broker.acls == {TOPIC: UNREADABLE}
        assert memory.get("/kafka-acl/Topic/orders")[0] == data, "a newer broker may go by it"
        broker.write(TOPIC, lambda acls: acls - UNREADABLE)
        assert broker.acls == {}
        broker.write(TOPIC, adding(READ))
    assert read_all_acls(memory) == {TOPIC: {READ}}


def test_a_deny_of_everything_that_can_be_read_is_an_entry_as_others(memory: MemoryRegistry) -> None:
    create_path(memory, "/kafka-acl/Topic/orders")
    memory.set("/kafka-acl/Topic/orders", AclNode.encode(UNREADABLE))
    with Broker(memory) as broker:
        assert broker.write(TOPIC, adding(READ)) == (UNREADABLE, UNREADABLE | {READ})


@pytest.mark.parametrize(("permission", "operation"), [("DENY", "WRITE"), ("deny", "write"), ("Deny", "Write")])
def test_entries_are_read_in_any_case_as_by_kafka(permission: str, operation: str) -> None:
    """Else a Deny that counts in Kafka denied nothing here."""
    acl = f'{{"principal":"User:bob","permissionType":"{permission}","operation":"{operation}","host":"127.0.0.1"}}'
    data = f'{{"version":1,"acls":[{acl}]}}'.encode()
    assert AclNode.decode("/kafka-acl/Topic/orders", data) == {NO_WRITE}


def test_operations_that_nobody_knows_are_kept_as_they_are() -> None:
    acl = b'{"principal":"User:bob","permissionType":"Deny","operation":"twoPhaseCommit","host":"*"}'
    (entry,) = AclNode.decode("/kafka-acl/Topic/orders", b'{"version":1,"acls":[' + acl + b"]}")
    assert entry.operation == "twoPhaseCommit"


def test_a_node_without_data_has_no_acls_and_can_be_given_some(memory: MemoryRegistry) -> None:
    create_path(memory, "/kafka-acl/Topic/orders")
    with Broker(memory) as broker:
        assert broker.acls == {}
        assert broker.write(TOPIC, adding(READ)) == (NOTHING, SOME)


@pytest.mark.parametrize(
    ("path", "data", "pattern"),
    [
        ("/kafka-acl-changes", b"Topic:orders", TOPIC),
        ("/kafka-acl-changes", b"GROUP:a:b", ResourcePattern("Group", "a:b")),
        ("/kafka-acl-changes", b"TransactionalId:t", ResourcePattern("TransactionalId", "t")),
        (
            "/kafka-acl-extended-changes",
            b'{"version":1,"resourceType":"Topic","name":"o","patternType":"prefixed"}',
            ResourcePattern("Topic", "o", is_prefixed=True),
        ),
        (
            "/kafka-acl-extended-changes",
            b'{"version":1,"resourceType":"USER","name":"User:a","patternType":"LITERAL"}',
            ResourcePattern("User", "User:a"),
        ),
    ],
)
def test_notices_are_read_as_older_brokers_wrote_them(path: str, data: bytes, pattern: ResourcePattern) -> None:
    assert AclChange.decode(f"{path}/acl_changes_0000000001", data) == pattern


HOSTILE = [
    b"",
    b"TOPIC",
    b"NONSENSE:t",
    b"\xff\xfe:t",
    b"TOPIC:../../brokers",
    b"TOPIC:",
    b"{}",
    b'{"version":9,"resourceType":"TOPIC","name":"t","patternType":"PREFIXED"}',
    b'{"version":1,"resourceType":"TOPIC","name":7,"patternType":"PREFIXED"}',
    b'{"version":1,"resourceType":"TOPIC","name":"t","patternType":"MATCH"}',
]


def test_notices_that_say_nothing_are_passed_over(memory: MemoryRegistry) -> None:
    with Broker(memory) as broker:
        for parent in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
            for data in HOSTILE:
                memory.create(f"{parent}/{AclChange.PREFIX}", data, sequential=True)
        update_acls(memory, TOPIC, adding(READ))
        wait_until(lambda: broker.acls == {TOPIC: {READ}}, WAIT_S, lambda: str(broker.acls))


@pytest.mark.parametrize("data", HOSTILE[1:])
def test_a_node_of_acls_never_fails_otherwise_than_as_such(data: bytes) -> None:
    with pytest.raises(ZnodeError):
        AclNode.decode("/kafka-acl/Topic/t", data)


@pytest.mark.parametrize("name", [".", "..", "a\x00b", "\ud800"])
def test_a_name_that_no_node_can_have_is_refused_and_costs_nobody_else(memory: MemoryRegistry, name: str) -> None:
    bad = ResourcePattern("Group", name)
    with Broker(memory) as broker:
        found = settled(broker.changes.change(lambda _: {bad: adding(READ), TOPIC: adding(READ)}))
        assert found[TOPIC] == (NOTHING, SOME)
        assert isinstance(found[bad], BrokerError)
        assert broker.acls == {TOPIC: {READ}}
    with pytest.raises(InvalidNodeError):
        update_acls(memory, bad, adding(READ))


def test_old_notices_are_removed_and_new_ones_stay(memory: MemoryRegistry) -> None:
    clock = Clock()
    ensemble = MemoryEnsemble(clock)
    registry = MemoryRegistry(ensemble)
    with Broker(registry, clock) as broker:
        broker.write(TOPIC, adding(READ))
        clock.time_ms += NOTICE_LIFE_MS + 1_000
        broker.write(TOPIC, adding(NO_WRITE))
        wait_until(lambda: len(registry.children("/kafka-acl-changes")) == 1, WAIT_S, "the old notice is still there")
        assert broker.acls == {TOPIC: {READ, NO_WRITE}}
    registry.close()


class Failing:
    """A registry that cannot be reached for a while."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away and name not in ("on_session_event", "close"):
            raise RegistryUnavailableError("away")
        return getattr(self._registry, name)


def test_what_was_missed_while_the_tree_was_away_is_read_when_it_is_back(
    memory: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acl_changes, "RETRY_S", 0.01)
    failing: Any = Failing(memory)
    with Broker(failing) as broker:
        broker.write(TOPIC, adding(READ))
        failing.is_away = True
        update_acls(memory, TOPIC, nothing)
        assert isinstance(broker.write(PREFIX, adding(READ)), BrokerError)
        assert broker.acls == {TOPIC: {READ}}
        failing.is_away = False
        wait_until(lambda: broker.acls == {}, WAIT_S, lambda: str(broker.acls))


def test_after_a_lost_session_all_is_read_anew_whatever_notices_are_gone(memory: MemoryRegistry) -> None:
    with Broker(memory) as broker:
        broker.write(TOPIC, adding(READ))
        memory.set(AclNode.path(TOPIC), AclNode.encode([NO_WRITE]))
        broker.changes._on_session_event(SessionEvent.ESTABLISHED)
        wait_until(lambda: broker.acls == {TOPIC: {NO_WRITE}}, WAIT_S, lambda: str(broker.acls))


def test_who_cannot_read_the_tree_does_not_start(memory: MemoryRegistry) -> None:
    failing: Any = Failing(memory)
    failing.is_away = True
    with pytest.raises(RegistryError):
        Broker(failing).changes.start()


def test_more_changes_than_may_wait_are_refused(memory: MemoryRegistry) -> None:
    broker = Broker(memory)
    waiting = [broker.changes.change(lambda _: {}) for _ in range(acl_changes.MOST_WAITING)]
    with pytest.raises(BrokerError) as refusal:
        settled(broker.changes.change(lambda _: {}))
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
    broker.changes.stop()
    with pytest.raises(BrokerError):
        settled(waiting[0])
    with pytest.raises(BrokerError):
        settled(broker.changes.change(lambda _: {}))
