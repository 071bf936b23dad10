"""Groups that are no consumers': Kafka Connect's workers, a schema registry. The broker hands on what it can't read."""

from collections.abc import Callable, Iterator

import pytest

from kavka.protocol.messages.describe_groups import DescribeGroupsRequest
from kavka.protocol.messages.list_groups import ListGroupsRequest
from tests.support.group_members import FAST_GROUPS
from tests.support.group_wire import WireMember
from tests.support.server import RunningServer
from tests.support.wire import Wire

BROKER_SETTINGS = FAST_GROUPS
REBALANCE_IN_PROGRESS, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID = 27, 23, 25
# What Connect's workers really offer: newest first, all of them opaque here.
CONNECT = {"sessioned": b"\x00\x02worker", "compatible": b"\x00\x01worker", "default": b"\x00\x00worker"}
NewMember = Callable[..., WireMember]


@pytest.fixture
def new_member(broker: RunningServer) -> Iterator[NewMember]:
    members: list[WireMember] = []

    def make(group_id: str, protocol_type: str, protocols: dict[str, bytes]) -> WireMember:
        members.append(WireMember(Wire(broker.host, broker.port), group_id, protocol_type, protocols))
        members[-1].wait_for_coordinator()
        return members[-1]

    yield make
    for member in members:
        member.wire.close()


def test_connect_workers_rebalance_by_their_own_protocols(new_member: NewMember, topic: str) -> None:
    first = new_member(topic, "connect", CONNECT)
    first.register()
    first.send_join()
    assert first.joined() == 0
    assert (first.answer.protocol_name, first.answer.leader) == ("sessioned", first.member_id)
    assert [bytes(one.metadata) for one in first.answer.members] == [CONNECT["sessioned"]]
    first.send_sync({first.member_id: b"connector and tasks"})
    assert first.synced() == (0, b"connector and tasks")

    # An older worker: the group falls back to what both know.
    old = {name: CONNECT[name] for name in ("compatible", "default")}
    second = new_member(topic, "connect", old)
    second.register()
    second.send_join()
    first.wait_for_rebalance()
    first.send_join()
    assert (first.joined(), second.joined()) == (0, 0)
    assert first.answer.protocol_name == second.answer.protocol_name == "compatible"
    assert {bytes(one.metadata) for one in first.answer.members} == {b"\x00\x01worker"}
    assert second.answer.members == []
    second.send_sync()
    first.send_sync({first.member_id: b"one", second.member_id: b"two"})
    assert (first.synced(), second.synced()) == ((0, b"one"), (0, b"two"))
    assert (first.heartbeat(), second.heartbeat()) == (0, 0)

    listed = {one.group_id: one for one in first.wire.ask(ListGroupsRequest(), 4).groups}
    assert (listed[topic].protocol_type, listed[topic].group_state) == ("connect", "Stable")
    (described,) = first.wire.ask(DescribeGroupsRequest(groups=[topic]), 5).groups
    assert (described.protocol_data, described.protocol_type) == ("compatible", "connect")
    assert {bytes(one.member_assignment) for one in described.members} == {b"one", b"two"}
    assert first.leave() == 0
    assert second.heartbeat() == REBALANCE_IN_PROGRESS
    assert first.heartbeat() == UNKNOWN_MEMBER_ID


def test_a_group_of_one_kind_refuses_members_of_another(new_member: NewMember, topic: str) -> None:
    registry = new_member(topic, "sr", {"v0": b'{"host":"here"}'})
    registry.register()
    registry.send_join()
    assert registry.joined() == 0
    registry.send_sync({registry.member_id: b'{"master":"here"}'})
    assert registry.synced() == (0, b'{"master":"here"}')

    consumer = new_member(topic, "consumer", {"v0": b"\x00\x00"})
    consumer.send_join()
    assert consumer.joined() == INCONSISTENT_GROUP_PROTOCOL
    newer = new_member(topic, "sr", {"v1": b"{}"})
    newer.send_join()
    assert newer.joined() == INCONSISTENT_GROUP_PROTOCOL
    assert registry.heartbeat() == 0


def test_an_assignment_of_nobody_is_an_empty_one(new_member: NewMember, topic: str) -> None:
    leader = new_member(topic, "connect", CONNECT)
    leader.register()
    other = new_member(topic, "connect", CONNECT)
    other.register()
    leader.send_join()
    assert leader.joined() == 0
    other.send_join()
    leader.wait_for_rebalance()
    leader.send_join()
    assert (leader.joined(), other.joined()) == (0, 0)
    other.send_sync()
    leader.send_sync({leader.member_id: b"all of it"})
    assert (leader.synced(), other.synced()) == ((0, b"all of it"), (0, b""))
