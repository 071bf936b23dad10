"""ACLs of a cluster with a Kavka and an Apache Kafka 3.9: each reads what the other wrote, and answers as it."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.authorizer.names import PatternType, Permission
from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kavka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kavka.protocol.messages.describe_acls import DescribeAclsRequest
from tests.support.acl_flags import COUNT, FILTERS, GIVEN, listed
from tests.support.java_tools import JavaTools
from tests.support.process_cluster import ProcessCluster
from tests.support.processes import wait_until
from tests.support.wire import ClosedError, RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = pytest.mark.java

KAFKA, KAVKA = 1, 7
WAIT_S = 120
SETTINGS = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}
Acl = tuple[Any, ...]
UNKNOWN, NOBODY_S = 0, 99
"""Numbers of enums: Kafka's UNKNOWN, and one that nobody has."""


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    directory = tmp_path_factory.mktemp("acls")
    with ProcessCluster(zookeeper, directory, kavkas=[KAVKA], kafkas=[KAFKA], settings=SETTINGS) as made:
        yield made


@pytest.fixture(scope="module")
def tool(cluster: ProcessCluster) -> Iterator[Callable[..., str]]:
    """kafka-acls of Kafka 4.3, which asks either broker."""
    with JavaTools("kafka-4.3") as tools:

        def run(*words: str) -> str:
            return tools.run("org.apache.kafka.tools.AclCommand", "--bootstrap-server", cluster.bootstrap, *words)

        yield run


@pytest.fixture(autouse=True)
def empty(cluster: ProcessCluster) -> Iterator[None]:
    """No ACLs are left to the next test."""
    yield
    clear(cluster)


def ask(cluster: ProcessCluster, broker_id: int, request: Any, version: int) -> Any:
    broker = cluster.brokers[broker_id]
    with RawClient(broker.host, broker.port) as client:
        return client.ask(request, version)


def clear(cluster: ProcessCluster) -> None:
    def is_empty() -> bool:
        # A Kafka deletes only what it has heard of.
        ask(cluster, KAVKA, deletion(), 3)
        return not acls(cluster, KAFKA) and not acls(cluster, KAVKA)

    wait_until(is_empty, WAIT_S, lambda: str(acls(cluster, KAFKA)))


def wait_for_count(cluster: ProcessCluster, broker_id: int, count: int) -> None:
    """Until a broker has heard of so many."""
    wait_until(lambda: len(acls(cluster, broker_id)) == count, WAIT_S, lambda: str(acls(cluster, broker_id)))


def acls(cluster: ProcessCluster, broker_id: int) -> set[Acl]:
    return told(ask(cluster, broker_id, DescribeAclsRequest(**everything()), 3))


def told(answer: Any) -> set[Acl]:
    assert answer.error_code == 0
    return {
        (*pattern, each.principal, each.host, each.operation, each.permission_type)
        for resource in answer.resources
        for pattern in [(resource.resource_type, resource.resource_name, resource.pattern_type)]
        for each in resource.acls
    }


def everything() -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }


def deletion(*filters: dict[str, Any]) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=[DeleteAclsFilter(**{**everything(), **each}) for each in filters or ({},)])


def creation(**fields: Any) -> AclCreation:
    usual = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**{**usual, **fields})


PREFIXED = {"resource_pattern_type": PatternType.PREFIXED, "resource_name": "or"}
EVERY_TYPE = [
    creation(),
    creation(operation=Operation.ALL, permission_type=Permission.DENY, host="0:0:0:0:0:0:0:1"),
    creation(principal="User:CN=a, O=b:c", resource_name="ord er,s\u00e9"),
    creation(resource_name="*", principal="User:*"),
    creation(**PREFIXED),
    creation(resource_type=ResourceType.GROUP, operation=Operation.DESCRIBE),
    creation(resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster", operation=Operation.CREATE),
    creation(resource_type=ResourceType.TRANSACTIONAL_ID, operation=Operation.WRITE, **PREFIXED),
    creation(resource_type=ResourceType.DELEGATION_TOKEN, operation=Operation.DESCRIBE),
    creation(resource_type=ResourceType.USER, resource_name="User:bob", operation=Operation.CREATE_TOKENS),
]


@pytest.mark.parametrize(("writer", "reader"), [(KAVKA, KAFKA), (KAFKA, KAVKA)])
def test_what_one_broker_writes_counts_at_the_other(cluster: ProcessCluster, writer: int, reader: int) -> None:
    made = ask(cluster, writer, CreateAclsRequest(creations=EVERY_TYPE), 3)
    assert [each.error_code for each in made.results] == [0] * len(EVERY_TYPE)
    expected = acls(cluster, writer)
    assert len(expected) == len(EVERY_TYPE)
    wait_until(lambda: acls(cluster, reader) == expected, WAIT_S, lambda: str(acls(cluster, reader) ^ expected))

    gone = ask(cluster, writer, deletion({"resource_type_filter": ResourceType.TOPIC, "host_filter": "*"}), 3)
    assert len(gone.filter_results[0].matching_acls) == 4
    expected = acls(cluster, writer)
    wait_until(lambda: acls(cluster, reader) == expected, WAIT_S, lambda: str(acls(cluster, reader) ^ expected))


in_each_version = pytest.mark.parametrize(
    "version", [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak), 3]
)
"""Those in between only bring fields of their neighbours."""


def outcome(cluster: ProcessCluster, broker_id: int, request: Any, version: int) -> Any:
    """What a broker answers, decoded and in an order of its own; or that it closes the connection.

    Version 0 knows literal patterns alone.
    """
    if version == 0:
        asked: list[Any] = getattr(request, "creations", None) or getattr(request, "filters", None) or [request]
        for each in asked:
            name = "resource_pattern_type" if isinstance(each, AclCreation) else "pattern_type_filter"
            setattr(each, name, PatternType.LITERAL)
    try:
        answer = ask(cluster, broker_id, request, version)
    except ClosedError:
        return "closed"
    if isinstance(request, DescribeAclsRequest):
        return (answer.error_code, answer.error_message, told(answer) if not answer.error_code else None)
    if isinstance(request, CreateAclsRequest):
        return [(each.error_code, each.error_message) for each in answer.results]
    return [
        (each.error_code, each.error_message, sorted(map(str, each.matching_acls))) for each in answer.filter_results
    ]


ASKED: list[dict[str, Any]] = [
    {},
    {"resource_name_filter": "orders"},
    {"resource_name_filter": "orders", "pattern_type_filter": PatternType.MATCH},
    {"resource_name_filter": "*", "pattern_type_filter": PatternType.MATCH},
    {"resource_name_filter": "or", "pattern_type_filter": PatternType.PREFIXED},
    {"resource_name_filter": "orders", "pattern_type_filter": PatternType.LITERAL},
    {"resource_name_filter": "", "resource_type_filter": ResourceType.TOPIC},
    {"resource_type_filter": ResourceType.USER},
    {"resource_type_filter": NOBODY_S},
    {"pattern_type_filter": NOBODY_S},
    {"principal_filter": "User:alice", "operation": Operation.READ},
    {"principal_filter": "User:*"},
    {"host_filter": "0:0:0:0:0:0:0:1"},
    {"permission_type": Permission.DENY},
    {"operation": NOBODY_S},
    {"operation": UNKNOWN},
    {"resource_type_filter": UNKNOWN},
    {"pattern_type_filter": UNKNOWN},
    {"permission_type": UNKNOWN},
]


@in_each_version
def test_filters_mean_the_same_in_every_version(cluster: ProcessCluster, version: int) -> None:
    ask(cluster, KAFKA, CreateAclsRequest(creations=EVERY_TYPE), 3)
    wait_for_count(cluster, KAVKA, len(EVERY_TYPE))
    for each in ASKED:
        asked = DescribeAclsRequest(**{**everything(), **each})
        kafka, kavka = (outcome(cluster, at, asked, version) for at in (KAFKA, KAVKA))
        assert kavka == kafka, each


REFUSED = [
    creation(resource_type=ResourceType.CLUSTER, resource_name="cluster"),
    creation(resource_name=""),
    creation(resource_name="a/b"),
    creation(operation=NOBODY_S),
    creation(resource_type=NOBODY_S),
    creation(permission_type=NOBODY_S),
    creation(resource_pattern_type=NOBODY_S),
    creation(resource_type=ResourceType.USER, operation=Operation.READ, resource_name="anything"),
    creation(resource_type=ResourceType.GROUP, operation=Operation.CREATE_TOKENS),
    creation(host="nonsense"),
    creation(principal="alice", resource_name="elsewhere"),
    creation(principal="User:alice", resource_name="elsewhere"),
    creation(principal="", resource_name="nobody"),
    creation(principal=":", resource_name="nobody-"),
]
CLOSED = [
    creation(operation=UNKNOWN),
    creation(resource_type=UNKNOWN),
    creation(permission_type=UNKNOWN),
    creation(resource_pattern_type=UNKNOWN),
    creation(operation=Operation.ANY),
    creation(resource_type=ResourceType.ANY),
    creation(permission_type=Permission.ANY),
    creation(resource_pattern_type=PatternType.ANY),
    creation(resource_pattern_type=PatternType.MATCH),
]


@in_each_version
def test_creations_are_refused_alike_in_every_version(cluster: ProcessCluster, version: int) -> None:
    together = CreateAclsRequest(creations=deepcopy([creation(), *REFUSED, creation()]))
    kafka, kavka = (outcome(cluster, at, together, version) for at in (KAFKA, KAVKA))
    assert kavka == kafka
    for each in CLOSED:
        alone = CreateAclsRequest(creations=deepcopy([creation(), each]))
        kafka, kavka = (outcome(cluster, at, alone, version) for at in (KAFKA, KAVKA))
        assert kavka == kafka, each


@in_each_version
def test_deletions_are_told_alike_in_every_version(cluster: ProcessCluster, version: int) -> None:
    for each in [*([each] for each in ASKED), [{"principal_filter": "User:nobody"}, {"host_filter": "*"}, {}]]:
        outcomes = []
        for broker_id in (KAFKA, KAVKA):
            ask(cluster, broker_id, CreateAclsRequest(creations=EVERY_TYPE), 3)
            wait_for_count(cluster, broker_id, len(EVERY_TYPE))
            outcomes.append(outcome(cluster, broker_id, deletion(*each), version))
            wait_for_count(cluster, KAFKA + KAVKA - broker_id, len(acls(cluster, broker_id)))
        kafka, kavka = outcomes
        assert kavka == kafka, each


def test_kafkas_newest_tool_is_served_by_both_alike(cluster: ProcessCluster, tool: Callable[..., str]) -> None:
    for words in GIVEN:
        tool("--add", *words)
    for broker_id in (KAFKA, KAVKA):
        wait_for_count(cluster, broker_id, COUNT)
    assert acls(cluster, KAVKA) == acls(cluster, KAFKA)
    assert len(listed(tool("--list"))) == COUNT
    assert {words: len(listed(tool("--list", *words))) for words in FILTERS} == FILTERS
    for words in GIVEN:
        tool("--remove", "--force", *words)
    for broker_id in (KAFKA, KAVKA):
        wait_for_count(cluster, broker_id, 0)
