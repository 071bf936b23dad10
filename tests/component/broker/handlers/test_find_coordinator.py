"""FindCoordinator: whose partition it is, where that broker is, and the wait for a topic that is not there yet."""

from collections.abc import Sequence
from typing import Any

import pytest

from kavka.broker.coordination.groups import GroupCoordination
from kavka.broker.coordination.transactions import TransactionCoordination
from kavka.broker.coordination.workers import Workers
from kavka.broker.handlers import find_coordinator
from kavka.broker.security.acl import Operation
from kavka.coordinator.partitioning import partition_for
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, update_metadata

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
HANDLERS = (find_coordinator,)
OTHER = 2


class Scene(Broker):
    """A broker with coordinators; `leaders` lead the partitions of both internal topics, unless there are none yet."""

    def __init__(self, *leaders: int, **settings: str) -> None:
        super().__init__({name.replace("_", "."): value for name, value in settings.items()})
        never: Any = pytest.fail
        self.services.groups = GroupCoordination(self.services, never, Workers(never, never, never))
        self.services.transactions = TransactionCoordination(
            self.services, self.services.groups, never, Workers(never, never, never)
        )
        if leaders:
            self.know(dict.fromkeys((GROUPS, TRANSACTIONS), leaders))

    def know(self, topics: dict[str, Sequence[int]]) -> None:
        brokers = {BROKER_ID: ("broker.example", 9092), OTHER: ("other.example", 9093)}
        self.metadata.apply(update_metadata(topics, brokers=brokers))

    def find(
        self, *keys: str, version: int = 6, key_type: int = 0, authorizer: Denying | None = None
    ) -> list[Coordinator]:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        return list(self.ask(request, version, authorizer=authorizer).coordinators)


@pytest.fixture(autouse=True)
def no_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding a coordinator needs no state machine."""
    monkeypatch.setattr("kavka.broker.coordination.coordination.Coordination.runtime", property(pytest.fail))


@pytest.mark.parametrize(("key_type", "version"), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 3)])
def test_old_versions_find_the_leader_of_the_keys_partition(key_type: int, version: int) -> None:
    scene = Scene(BROKER_ID, OTHER, BROKER_ID)
    own = next(key for key in map(str, range(99)) if partition_for(key, 3) == 0)
    others = next(key for key in map(str, range(99)) if partition_for(key, 3) == 1)

    here = scene.ask(FindCoordinatorRequest(key=own, key_type=key_type), version)
    there = scene.ask(FindCoordinatorRequest(key=others, key_type=key_type), version)

    assert (here.error_code, here.node_id, here.host, here.port) == (0, BROKER_ID, "broker.example", 9092)
    assert (there.error_code, there.node_id, there.host, there.port) == (0, OTHER, "other.example", 9093)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_each_of_several_keys_is_answered(version: int) -> None:
    forbids = Denying((Operation.DESCRIBE, "secret"))

    answers = Scene(BROKER_ID).find("g", "secret", "", version=version, authorizer=forbids)

    assert [(each.key, each.error_code, each.node_id) for each in answers] == [
        ("g", ErrorCode.NONE, BROKER_ID),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED, -1),
        ("", ErrorCode.NONE, BROKER_ID),
    ]


def test_nothing_asked_is_nothing_answered() -> None:
    assert Scene(BROKER_ID).find() == []
    assert Scene().find() == []


def test_transactional_ids_have_an_error_of_their_own() -> None:
    forbids = Denying((Operation.DESCRIBE, "t"))

    (answer,) = Scene(BROKER_ID).find("t", key_type=1, authorizer=forbids)

    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("key_type", [2, 9, -1])
def test_other_keys_have_no_coordinator(key_type: int) -> None:
    (answer,) = Scene(BROKER_ID).find("s", key_type=key_type)

    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("leader", [-1, 77])
def test_a_partition_without_a_live_leader_has_no_coordinator_now(leader: int) -> None:
    (answer,) = Scene(leader).find("g")

    assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(("key_type", "name"), [(0, GROUPS), (1, TRANSACTIONS)])
def test_the_topic_is_created_on_first_need_as_the_settings_say(key_type: int, name: str) -> None:
    scene = Scene(
        offsets_topic_num_partitions="7",
        offsets_topic_segment_bytes="4242",
        transaction_state_log_num_partitions="7",
        transaction_state_log_segment_bytes="4242",
    )

    (answer,) = scene.find("g", key_type=key_type)

    assert (answer.error_code, answer.node_id) == (ErrorCode.NONE, BROKER_ID)
    (created,) = scene.controller.created
    assert (created.name, created.partitions, created.replication_factor) == (name, 7, 1)
    common = {"cleanup.policy": "compact", "segment.bytes": "4242"}
    assert created.configs == common | (
        {"compression.type": "producer"}
        if key_type == 0
        else {
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "false",
        }
    )


@pytest.mark.parametrize(("registry", "factor"), [({}, 1), ({"zookeeper_connect": "127.0.0.1:2181"}, 3)])
def test_the_replication_factor_is_that_of_the_settings_in_a_cluster_however_few_live(
    registry: dict[str, str], factor: int
) -> None:
    scene = Scene(offsets_topic_replication_factor="3", **registry)
    scene.know({"other": [OTHER]})

    scene.find("g")

    assert [topic.replication_factor for topic in scene.controller.created] == [factor]


def test_a_creation_that_takes_too_long_or_fails_is_to_be_asked_for_again() -> None:
    slow, refused = Scene(), Scene()
    slow.controller.holding = True
    refused.controller.refuse[GROUPS] = BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR)

    for scene in (slow, refused):
        (answer,) = scene.find("g")
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    slow.controller.holding = False


def test_nobody_who_may_not_ask_has_a_topic_created() -> None:
    scene = Scene()

    (answer,) = scene.find("g", authorizer=Denying((Operation.DESCRIBE, "*")))

    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert scene.controller.created == []
