"""Coordinators: found once, lost and found again, refused."""

from kavka.client.api_errors import GroupAuthorizationError
from kavka.client.backoff import ExponentialBackoff
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.broker_versions import BrokerVersions
from kavka.client.cluster import Cluster
from kavka.client.coordinators import CoordinatorKind, Coordinators
from kavka.client.errors import DisconnectedError
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.support.fake_network import FakeNetwork

GROUP, TRANSACTION = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION
INFINITY = float("inf")
FOUND = Node(7, "seven", 9)


class Stage:
    def __init__(self, network: FakeNetwork | None = None) -> None:
        self.network = network or FakeNetwork()
        bootstrap = Bootstrap(bootstrap_nodes(["first:9092"]), on_found=lambda: None)
        self.metadata = Metadata(bootstrap, MetadataSettings(), wake=self.network.wakeup)
        self.told: list[tuple[CoordinatorKind, str]] = []
        self.coordinators = Coordinators(
            self.network,
            self.metadata,
            ExponentialBackoff(100, 1_000, lambda: 0.5),
            on_found=lambda kind, key: self.told.append((kind, key)),
        )


def found(*keys: str, code: int = 0) -> FindCoordinatorResponse:
    rows = [
        Coordinator(key=key, node_id=7, host="seven", port=9, error_code=code, error_message="why" if code else None)
        for key in keys
    ]
    return FindCoordinatorResponse(
        error_code=0, error_message=None, node_id=0, host="", port=0, coordinators=rows, throttle_time_ms=0
    )


def test_a_coordinator_is_asked_for_once_and_remembered() -> None:
    stage = Stage()
    assert stage.coordinators.node(GROUP, "g") is None
    assert stage.coordinators.work(0) == INFINITY
    assert stage.coordinators.node(GROUP, "g") is None
    assert stage.coordinators.work(1) == INFINITY
    sent = stage.network.take()
    assert (sent.request.coordinator_keys, sent.request.key_type) == (["g"], 0)
    sent.answer(found("g"))
    assert stage.coordinators.node(GROUP, "g") == FOUND
    assert stage.told == [(GROUP, "g")]
    stage.coordinators.work(2)
    assert stage.network.sent == []


def test_several_keys_go_out_together_and_kinds_by_themselves() -> None:
    stage = Stage()
    for key in "abc":
        stage.coordinators.node(GROUP, key)
    stage.coordinators.node(TRANSACTION, "t")
    stage.coordinators.work(0)
    groups, transactions = stage.network.sent
    assert groups.request.coordinator_keys == ["a", "b", "c"]
    assert transactions.request.key_type == 1
    groups.answer(found("a", "c"))
    assert stage.coordinators.node(GROUP, "a") == stage.coordinators.node(GROUP, "c") == FOUND
    assert stage.coordinators.failure(GROUP, "b") is not None


def test_an_old_broker_is_asked_for_one_key_at_a_time() -> None:
    stage = Stage(FakeNetwork(BrokerVersions({ApiKey.FIND_COORDINATOR: (0, 2)}, {}, -1)))
    for key in "ab":
        stage.coordinators.node(GROUP, key)
    for key in "ab":
        stage.coordinators.work(0)
        sent = stage.network.take()
        assert sent.request.key == key
        sent.answer(
            FindCoordinatorResponse(
                error_code=0, error_message=None, node_id=7, host="seven", port=9, coordinators=[], throttle_time_ms=0
            )
        )
        assert stage.coordinators.node(GROUP, key) == FOUND


def test_one_that_is_not_there_yet_is_asked_for_again_ever_later() -> None:
    stage = Stage()
    stage.coordinators.node(GROUP, "g")
    waits, now_ms = [], 0.0
    for answer in (found("g", code=ErrorCode.COORDINATOR_NOT_AVAILABLE), DisconnectedError("gone")) * 2:
        stage.coordinators.work(now_ms)
        stage.network.take().answer(answer)
        now_ms += 1_000_000
        waits.append(stage.coordinators.work(now_ms))
        assert stage.network.sent == []
        now_ms += waits[-1]
    assert waits == [100, 200, 400, 800]
    stage.coordinators.work(now_ms)
    stage.network.take().answer(found("g"))
    assert stage.coordinators.node(GROUP, "g") == FOUND


def test_one_that_was_lost_is_asked_for_again() -> None:
    stage = Stage()
    stage.coordinators.node(GROUP, "g")
    stage.coordinators.work(0)
    stage.network.take().answer(found("g"))
    stage.coordinators.lost(GROUP, "g", Node(8, "another", 1))
    assert stage.coordinators.node(GROUP, "g") == FOUND, "it was another that was lost"
    stage.coordinators.lost(GROUP, "g", FOUND)
    assert stage.coordinators.node(GROUP, "g") is None
    stage.coordinators.work(0)
    assert stage.network.sent


def test_a_refusal_stays_until_it_is_forgotten() -> None:
    stage = Stage()
    stage.coordinators.node(GROUP, "g")
    stage.coordinators.work(0)
    stage.network.take().answer(found("g", code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    failure = stage.coordinators.failure(GROUP, "g")
    assert isinstance(failure, GroupAuthorizationError)
    assert str(failure) == "why"
    assert stage.told == [(GROUP, "g")]
    assert stage.coordinators.node(GROUP, "g") is None
    assert stage.coordinators.work(0) == INFINITY
    stage.coordinators.forget(GROUP, "g")
    assert stage.coordinators.failure(GROUP, "g") is None
    stage.coordinators.node(GROUP, "g")
    stage.coordinators.work(0)
    assert stage.network.sent


def test_an_answer_that_comes_after_forgetting_changes_nothing() -> None:
    for answer in (found("g"), DisconnectedError("gone")):
        stage = Stage()
        stage.coordinators.node(GROUP, "g")
        stage.coordinators.work(0)
        stage.coordinators.forget(GROUP, "g")
        stage.network.take().answer(answer)
        assert stage.told == []
        assert stage.coordinators.work(0) == INFINITY


def test_with_no_node_to_ask_metadata_are_needed() -> None:
    stage = Stage()
    stage.network.unready = {-1: 70.0}
    stage.coordinators.node(GROUP, "g")
    assert stage.coordinators.work(0) == 70
    assert stage.metadata.due_in_ms(0) == 0


def test_one_that_newer_metadata_have_elsewhere_is_asked_for_again() -> None:
    """Who else talks to that broker goes to the new address: the two would undo each other's connection for ever."""
    stage = Stage()
    stage.coordinators.node(TRANSACTION, "t")
    stage.coordinators.work(0)
    stage.network.take().answer(found("t"))
    stage.metadata.cluster = Cluster(nodes={7: Node(7, "seven", 9)}, version=1)
    assert stage.coordinators.node(TRANSACTION, "t") == FOUND
    stage.metadata.cluster = Cluster(nodes={7: Node(7, "elsewhere", 9)}, version=2)
    assert stage.coordinators.node(TRANSACTION, "t") is None
    stage.coordinators.work(0)
    # Brokers that hear of it later may say the same again; it is their last word until the metadata change.
    stage.network.take().answer(found("t"))
    assert stage.coordinators.node(TRANSACTION, "t") == FOUND
