"""Each znode is written as Kafka 3.9 writes it, and whatever is found there is read or refused."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cluster.znodes.admin import PartitionReassignments, PreferredElections
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint, FeatureRange
from kavka.cluster.znodes.cluster_id import ClusterId
from kavka.cluster.znodes.config import ConfigChange, EntityConfig
from kavka.cluster.znodes.controller import ControllerEpoch, ControllerLease
from kavka.cluster.znodes.feature import FeatureLevels
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.notifications import IsrChange, LogDirEvent
from kavka.cluster.znodes.producer_id_block import LatestProducerIdBlock
from kavka.cluster.znodes.topic import RECOVERED, RECOVERING, PartitionAssignment, PartitionState, TopicAssignment
from kavka.protocol.schema import text_to_uuid

PLAIN = Endpoint("PLAINTEXT", "127.0.0.1", 9192, "PLAINTEXT")

WRITTEN_BY_KAFKA = {
    "cluster id": (ClusterId.encode("Qiv73oR_Q2yY6Sd4GtGjwQ"), b'{"version":"1","id":"Qiv73oR_Q2yY6Sd4GtGjwQ"}'),
    "broker": (
        BrokerInfo(1, (PLAIN,), timestamp_ms=1795252571257).encode(),
        (
            b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            b'"endpoints":["PLAINTEXT://127.0.0.1:9192"],"jmx_port":-1,"port":9192,"host":"127.0.0.1","version":5,'
            b'"timestamp":"1795252571257"}'
        ),
    ),
    "topic": (
        TopicAssignment({0: (1, 2, 3)}, text_to_uuid("thXhaB9LRBitLo6nbpYw8w")).encode(),
        (
            b'{"partitions":{"0":[1,2,3]},"topic_id":"thXhaB9LRBitLo6nbpYw8w","adding_replicas":{},'
            b'"removing_replicas":{},"version":3}'
        ),
    ),
    "state": (
        PartitionState(1, 0, (1,), 1).encode(),
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
    ),
    "recovering state": (
        PartitionState(2, 1, (2,), 3, recovery=1).encode(),
        (b'{"controller_epoch":3,"leader":2,"version":1,"leader_epoch":1,"isr":[2],"leader_recovery_state":1}'),
    ),
    "state that others follow": (
        PartitionState(2, 1, (2, 3), 3, leader_broker_epoch=77, latest_broker_epoch=78).encode(),
        (
            b'{"controller_epoch":3,"leader":2,"version":1,"leader_epoch":1,"isr":[2,3],"leader_broker_epoch":77,'
            b'"latest_broker_epoch":78}'
        ),
    ),
    "reassignment": (
        PartitionReassignments.encode({("t", 0): (1, 2)}),
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
    ),
    "preferred election": (
        PreferredElections.encode([("t", 0)]),
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    ),
    "controller": (
        ControllerLease(1, 1795252571332).encode(),
        b'{"version":2,"brokerid":1,"timestamp":"1795252571332","kraftControllerEpoch":-1}',
    ),
    "controller epoch": (ControllerEpoch.encode(1), b"1"),
    "config": (
        EntityConfig.encode({"cleanup.policy": "compact", "segment.bytes": "104857600"}),
        b'{"version":1,"config":{"cleanup.policy":"compact","segment.bytes":"104857600"}}',
    ),
    "config change": (ConfigChange.encode("topics/T"), b'{"version":2,"entity_path":"topics/T"}'),
    "isr change": (IsrChange.encode([("t", 0)]), b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'),
    "log dir event": (LogDirEvent.encode(1), b'{"version":1,"broker":1,"event":1}'),
    "feature": (FeatureLevels({}).encode(), b'{"features":{},"version":2,"status":1}'),
    "agreed feature": (
        FeatureLevels({"a": 3}).encode(),
        b'{"features":{"a":{"max_version_level":3}},"version":2,"status":1}',
    ),
    "producer ids": (
        LatestProducerIdBlock(1, 0, 999).encode(),
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
    ),
}

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "cluster id": ClusterId.decode,
    "broker": lambda data: BrokerInfo.decode(1, data, 7),
    "topic": lambda data: TopicAssignment.decode("t", data),
    "state": lambda data: PartitionState.decode("t", 0, data, 3),
    "recovering state": lambda data: PartitionState.decode("t", 0, data, 3),
    "reassignment": PartitionReassignments.decode,
    "preferred election": PreferredElections.decode,
    "controller": ControllerLease.decode,
    "controller epoch": ControllerEpoch.decode,
    "config": lambda data: EntityConfig.decode("topics/t", data),
    "config change": lambda data: ConfigChange.decode("config_change_0000000000", data),
    "isr change": lambda data: IsrChange.decode("isr_change_0000000000", data),
    "log dir event": lambda data: LogDirEvent.decode("log_dir_event_0000000000", data),
    "feature": FeatureLevels.decode,
    "producer ids": LatestProducerIdBlock.decode,
}

broker_ids = st.integers(0, 2**31 - 1)
replica_lists = st.lists(broker_ids, min_size=1, max_size=5, unique=True).map(tuple)


@pytest.mark.parametrize("name", WRITTEN_BY_KAFKA)
def test_a_node_is_written_byte_for_byte_as_kafka_writes_it(name: str) -> None:
    ours, kafkas = WRITTEN_BY_KAFKA[name]
    assert ours == kafkas


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.binary(max_size=200))
def test_random_bytes_are_refused_by_a_clear_error(name: str, data: bytes) -> None:
    with suppress(ZnodeError):
        DECODERS[name](data)


@pytest.mark.parametrize("name", DECODERS)
@given(at=st.integers(0, 300), value=st.binary(max_size=4))
def test_a_damaged_node_gives_a_value_or_a_clear_error(name: str, at: int, value: bytes) -> None:
    whole = WRITTEN_BY_KAFKA[name][0]
    at %= len(whole)
    with suppress(ZnodeError):
        DECODERS[name](whole[:at] + value + whole[at + len(value) :])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", [name for name in DECODERS if name != "controller epoch"])
@given(data=st.data())
def test_a_field_of_another_type_gives_a_value_or_a_clear_error(name: str, data: st.DataObject) -> None:
    fields = json.loads(WRITTEN_BY_KAFKA[name][0])
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(json_values)
    with suppress(ZnodeError):
        DECODERS[name](json.dumps(fields).encode())


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"version":' + b"9" * 5000 + b"}", b"\xff\xfe{", b"{}" + b"\x00", b"null", b"[]", b"1"],
    ids=["deep", "huge number", "bad text", "trailing", "null", "list", "number"],
)
def test_hostile_json_is_refused(data: bytes) -> None:
    with pytest.raises(ZnodeError, match="/brokers/topics/t cannot be read"):
        TopicAssignment.decode("t", data)


@given(
    leader=st.integers(-1, 2**31 - 1),
    epoch=st.integers(0, 2**31 - 2),
    isr=replica_lists,
    controller_epoch=broker_ids,
    recovery=st.sampled_from([RECOVERED, RECOVERING]),
    broker_epoch=st.integers(-1, 2**63 - 1),
    latest=st.integers(-1, 2**63 - 1),
)
def test_a_state_comes_back_as_written(
    leader: int, epoch: int, isr: tuple[int, ...], controller_epoch: int, recovery: int, broker_epoch: int, latest: int
) -> None:
    state = PartitionState(leader, epoch, isr, controller_epoch, 5, recovery, broker_epoch, latest)
    assert PartitionState.decode("t", 0, state.encode(), 5) == state
    spaced = json.dumps(json.loads(state.encode()), sort_keys=True).encode()
    assert PartitionState.decode("t", 0, spaced, 5) == state


def test_an_isr_that_names_a_broker_twice_is_refused() -> None:
    with pytest.raises(ZnodeError, match="twice"):
        PartitionState.decode("t", 0, PartitionState(1, 0, (1, 1), 1).encode(), 0)


@given(
    replicas=st.dictionaries(broker_ids, replica_lists, max_size=5),
    topic_id=st.binary(min_size=16, max_size=16).filter(any) | st.none(),
    adding=st.integers(1, 4),
)
def test_an_assignment_comes_back_as_written(
    replicas: dict[int, tuple[int, ...]], topic_id: bytes | None, adding: int
) -> None:
    moving = {partition: brokers[adding:] for partition, brokers in replicas.items() if brokers[adding:]}
    assignment = TopicAssignment(replicas, topic_id, moving, moving)
    assert TopicAssignment.decode("t", assignment.encode()) == assignment


def test_a_way_that_leads_nowhere_is_none() -> None:
    stored = TopicAssignment(
        {0: (1, 2), 1: (1, 2), 2: (1, 2)},
        bytes(16),
        adding={0: (1, 2), 1: (2, 9), 7: (1,)},
        removing={1: (9,), 2: (2, 1)},
    )
    decoded = TopicAssignment.decode("t", stored.encode())
    assert decoded == TopicAssignment(stored.replicas, None, adding={1: (2,)})


def test_an_epoch_after_which_there_is_none_cannot_be_read() -> None:
    with pytest.raises(ZnodeError):
        PartitionState.decode("t", 0, PartitionState(1, 2**31 - 1, (1,), 1).encode(), 0)


@given(replicas=replica_lists, first=replica_lists, second=replica_lists)
def test_a_reassignment_knows_where_it_came_from_and_where_it_goes(
    replicas: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    moving = PartitionAssignment(replicas).towards(first)
    assert moving.target == first
    assert sorted(moving.origin) == sorted(replicas)
    assert moving.is_moving is (set(first) != set(replicas))
    again = moving.towards(second)
    assert (again.target, sorted(again.origin)) == (second, sorted(replicas))
    assert set(again.replicas) == {*replicas, *second}
    assert not moving.towards(moving.origin).is_moving


def test_a_topic_of_kafka_0_8_has_no_id() -> None:
    assert TopicAssignment.decode("t", b'{"version":1,"partitions":{"0":[1]}}') == TopicAssignment({0: (1,)}, None)


def test_a_broker_of_kafka_0_8_has_one_plaintext_endpoint() -> None:
    data = b'{"version":1,"host":"old.example","port":9092,"jmx_port":9999,"timestamp":"12"}'
    broker = BrokerInfo.decode(4, data, epoch=77)
    assert broker.endpoints == (Endpoint("PLAINTEXT", "old.example", 9092, "PLAINTEXT"),)
    assert (broker.jmx_port, broker.timestamp_ms, broker.epoch) == (9999, 12, 77)


def test_a_broker_comes_back_with_named_listeners_ipv6_and_rack() -> None:
    endpoints = (Endpoint("INSIDE", "::1", 9093, "SASL_SSL"), PLAIN)
    broker = BrokerInfo(2, endpoints, "r1", 5, epoch=9, features=(FeatureRange("f", 1, 3),))
    assert BrokerInfo.decode(2, broker.encode(), 9) == broker
    assert json.loads(broker.encode())["endpoints"][0] == "INSIDE://[::1]:9093"
    assert json.loads(broker.encode())["host"] == "127.0.0.1"
    assert json.loads(broker.encode())["features"] == {"f": {"min_version": 1, "max_version": 3}}


def test_a_broker_without_plaintext_has_no_host_for_old_readers() -> None:
    fields = json.loads(BrokerInfo(2, (Endpoint("SSL", "h", 1, "SSL"),)).encode())
    assert (fields["host"], fields["port"]) == (None, -1)


@pytest.mark.parametrize(
    "endpoint", ["nonsense", "PLAINTEXT://h", "PLAINTEXT://h:99999", "OTHER://h:1", "PLAINTEXT://a b:1"]
)
def test_a_broker_with_an_endpoint_out_of_reach_is_refused(endpoint: str) -> None:
    fields = json.loads(BrokerInfo(2, (PLAIN,)).encode()) | {"endpoints": [endpoint]}
    with pytest.raises(ZnodeError):
        BrokerInfo.decode(2, json.dumps(fields).encode(), 1)


@pytest.mark.parametrize("rack", ["\ud800", "x" * 32768, "\u00e9" * 16384])
def test_a_broker_that_no_message_could_tell_of_is_refused(rack: str) -> None:
    """Else nobody would be told of the others either, as all are told of in one message."""
    fields = json.loads(BrokerInfo(2, (PLAIN,)).encode())
    with pytest.raises(ZnodeError):
        BrokerInfo.decode(2, json.dumps(fields | {"rack": rack}).encode(), 1)
    old = {"version": 1, "host": rack, "port": 1, "jmx_port": -1}
    with pytest.raises(ZnodeError):
        BrokerInfo.decode(2, json.dumps(old).encode(), 1)


@pytest.mark.parametrize("path", ["", "/topics/t", "topics//t", "../t", "topics/..", "topics/a\nb"])
def test_a_notice_may_not_lead_out_of_the_configurations(path: str) -> None:
    with pytest.raises(ZnodeError):
        ConfigChange.decode("config_change_0000000001", ConfigChange.encode(path))


def test_a_notice_of_the_first_version_names_type_and_entity_apart() -> None:
    data = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert ConfigChange.decode("config_change_0000000001", data) == "topics/t"


def test_an_empty_configuration_node_sets_nothing() -> None:
    assert EntityConfig.decode("topics/t", b"") == {}
