"""Classic groups: members join, sync, beat and leave, with good requests and bad ones."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kavka.protocol.schema import Request
from tests.integration.oracle.answers.stage import Stage, scenario
from tests.support.processes import wait_until
from tests.support.wire import Wire

SUBSCRIPTION: Final = encode_subscription(ConsumerProtocolSubscription(topics=["t"]), 1)
RANGE: Final = (("range", SUBSCRIPTION),)
BOTH: Final = (("range", SUBSCRIPTION), ("sticky", SUBSCRIPTION))
NEWEST_JOIN, NEWEST_SYNC, NEWEST_HEARTBEAT, NEWEST_LEAVE = 9, 5, 4, 5
MEMBER_ID: Final = re.compile(r"(\w+)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME_TO_LOAD_S: Final = 90.0


class Troupe:
    """One group, its members, and their ids as names: `ask` records answers with the names in the ids' place."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.group = stage.name
        self.names: dict[str, str] = {}
        self._find()

    def ask(self, label: str, request: Request, version: int, client: Wire | None = None) -> Any:
        answer = (client or self.stage.client).ask(request, version)
        self.note(label, answer)
        return answer

    def note(self, label: str, answer: Any) -> None:
        self.stage.note(label, self._named(self.stage.plain(answer)))

    def join(self, member_id: str = "", **given: Any) -> JoinGroupRequest:
        """A JoinGroup with defaults for what is not given."""
        fields: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            **given,
        }
        offered: Sequence[tuple[str, bytes]] = fields.pop("protocols", RANGE)
        protocols = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offered]
        return JoinGroupRequest(member_id=member_id, protocols=protocols, **fields)

    def sync(self, member_id: str, generation: int, *assigned: str, **given: Any) -> SyncGroupRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "protocol_type": "consumer",
            "protocol_name": "range",
            **given,
        }
        assignments = [SyncGroupRequestAssignment(member_id=each, assignment=b"assignment") for each in assigned]
        return SyncGroupRequest(generation_id=generation, member_id=member_id, assignments=assignments, **fields)

    def heartbeat(self, member_id: str, generation: int, **given: Any) -> HeartbeatRequest:
        fields: dict[str, Any] = {"group_id": self.group, **given}
        return HeartbeatRequest(generation_id=generation, member_id=member_id, **fields)

    def leave(self, version: int, *members: str | tuple[str, str], group: str | None = None) -> LeaveGroupRequest:
        request = LeaveGroupRequest(group_id=self.group if group is None else group)
        if version < 3:
            request.member_id = str(members[0])
            return request
        pairs = [(each, None) if isinstance(each, str) else each for each in members]
        request.members = [MemberIdentity(member_id=one, group_instance_id=instance) for one, instance in pairs]
        return request

    def new_member(self, name: str, version: int = NEWEST_JOIN, **given: Any) -> tuple[str, int]:
        """A member that is alone, or whose companions join too; its id and its generation."""
        answer = self.ask(f"{name} joins", self.join(**given), version)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.names[answer.member_id] = name
            answer = self.ask(f"{name} joins with its id", self.join(answer.member_id, **given), version)
        self.names[answer.member_id] = name
        return answer.member_id, answer.generation_id

    def stable_member(self, name: str, **given: Any) -> tuple[str, int]:
        """A member of a Stable group, alone."""
        member_id, generation = self.new_member(name, **given)
        instance = given.get("group_instance_id")
        request = self.sync(member_id, generation, member_id, group_instance_id=instance)
        self.ask(f"{name} syncs", request, NEWEST_SYNC)
        return member_id, generation

    @contextmanager
    def another_client(self) -> Iterator[Wire]:
        host, port = self.stage.client.address
        with Wire(host, port) as client:
            yield client

    def _find(self) -> None:
        """Wait until the coordinator is there and has loaded the group's partition."""

        def ready() -> bool:
            found = self.stage.client.ask(FindCoordinatorRequest(key=self.group), 3)
            if found.error_code:
                return False
            code = self.stage.client.ask(self.sync("nobody", 0), NEWEST_SYNC).error_code
            return bool(code == ErrorCode.UNKNOWN_MEMBER_ID)

        wait_until(ready, TIME_TO_LOAD_S, f"{self.group} gets no coordinator")

    def _named(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items()}
        if isinstance(value, list):
            return sorted((self._named(item) for item in value), key=repr)
        if isinstance(value, str):
            if value in self.names:
                return self.names[value]
            made = MEMBER_ID.fullmatch(value)
            return f"an id of {made[1]}" if made else value
        return value


@scenario(ApiKey.JOIN_GROUP)
def groups_are_joined_by_one_member(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    member_id, generation = troupe.new_member("one", version)
    troupe.ask("again, before it syncs", troupe.join(member_id), version)
    troupe.ask("syncs", troupe.sync(member_id, generation, member_id), NEWEST_SYNC)
    leads = troupe.ask("again, as the leader", troupe.join(member_id), version)
    troupe.ask("beats in the old generation", troupe.heartbeat(member_id, generation), NEWEST_HEARTBEAT)
    troupe.ask("beats", troupe.heartbeat(member_id, leads.generation_id), NEWEST_HEARTBEAT)
    troupe.ask("with both protocols", troupe.join(member_id, protocols=BOTH), version)
    troupe.ask("leaves", troupe.leave(NEWEST_LEAVE, member_id), NEWEST_LEAVE)
    troupe.ask("is unknown now", troupe.join(member_id), version)
    troupe.new_member("next", version)


@scenario(ApiKey.JOIN_GROUP)
def groups_are_joined_by_two(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    leader, generation = troupe.stable_member("leader")
    with troupe.another_client() as client:
        key = client.send(troupe.join(), version)
        member_id = ""
        if version >= 4:
            answer = client.receive(key, version)
            member_id = answer.member_id
            troupe.note("follower gets an id", answer)
            key = client.send(troupe.join(member_id), version)
        beats = troupe.heartbeat(leader, generation)
        rebalancing = ErrorCode.REBALANCE_IN_PROGRESS
        wait_until(
            lambda: stage.client.ask(beats, NEWEST_HEARTBEAT).error_code == rebalancing,
            TIME_TO_LOAD_S,
            "no rebalance begins",
        )
        troupe.ask("leader syncs while members join", troupe.sync(leader, generation), NEWEST_SYNC)
        led = stage.client.ask(troupe.join(leader), version)
        followed = client.receive(key, version)
        troupe.names[followed.member_id] = "follower"
        troupe.note("leader joins again", led)
        troupe.note("follower joins", followed)
        key = client.send(troupe.sync(followed.member_id, led.generation_id), NEWEST_SYNC)
        troupe.ask("leader syncs", troupe.sync(leader, led.generation_id, followed.member_id), NEWEST_SYNC)
        troupe.note("follower syncs", client.receive(key, NEWEST_SYNC))
        troupe.ask("follower joins again", troupe.join(followed.member_id), version)
        troupe.ask("both leave", troupe.leave(NEWEST_LEAVE, leader, followed.member_id), NEWEST_LEAVE)


@scenario(ApiKey.JOIN_GROUP)
def wrong_joins_are_refused(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    troupe.ask("no group id", troupe.join(group_id=""), version)
    troupe.ask("short session", troupe.join(session_timeout_ms=5_999), version)
    troupe.ask("long session", troupe.join(session_timeout_ms=1_800_001), version)
    troupe.ask("unknown group", troupe.join("stranger", group_id=f"{stage.name}-unknown"), version)
    troupe.ask("no protocols", troupe.join(protocols=()), version)
    troupe.ask("no protocol type", troupe.join(protocol_type=""), version)
    member_id, _ = troupe.stable_member("one")
    troupe.ask("unknown member", troupe.join("stranger"), version)
    troupe.ask("other protocol type", troupe.join(protocol_type="connect"), version)
    troupe.ask("other protocols", troupe.join(protocols=(("mine", b""),)), version)
    troupe.ask("known with other protocols", troupe.join(member_id, protocol_type="connect"), version)
    if version >= 5:
        troupe.ask("unknown instance", troupe.join(member_id, group_instance_id="unknown"), version)


@scenario(ApiKey.JOIN_GROUP, "5-9")
def static_members_come_back(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    old, generation = troupe.stable_member("old", group_instance_id="a")
    answer = stage.client.ask(troupe.join(group_instance_id="a"), version)
    troupe.names[answer.member_id] = "new"
    troupe.note("is back", answer)
    for name, member_id in (("old", old), ("new", answer.member_id)):
        beats = troupe.heartbeat(member_id, generation, group_instance_id="a")
        troupe.ask(f"{name} beats", beats, NEWEST_HEARTBEAT)
        troupe.ask(f"{name} beats nameless", troupe.heartbeat(member_id, generation), NEWEST_HEARTBEAT)
        syncs = troupe.sync(member_id, generation, group_instance_id="a")
        troupe.ask(f"{name} syncs", syncs, NEWEST_SYNC)
        troupe.ask(f"{name} leaves another", troupe.leave(5, (member_id, "b")), NEWEST_LEAVE)
    troupe.ask("old joins", troupe.join(old, group_instance_id="a"), version)
    troupe.ask("old leaves", troupe.leave(5, (old, "a")), NEWEST_LEAVE)
    troupe.ask("new joins again", troupe.join(answer.member_id, group_instance_id="a"), version)
    again = stage.client.ask(troupe.join(group_instance_id="a", protocols=BOTH), version)
    troupe.names[again.member_id] = "newest"
    troupe.note("is back before it synced", again)
    troupe.ask("an administrator removes it", troupe.leave(5, ("", "a"), ("", "b")), NEWEST_LEAVE)


@scenario(ApiKey.SYNC_GROUP)
def wrong_syncs_are_refused(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    troupe.ask("no group id", troupe.sync("stranger", 1, group_id=""), version)
    troupe.ask("unknown group", troupe.sync("stranger", 1, group_id=f"{stage.name}-unknown"), version)
    member_id, generation = troupe.new_member("one")
    troupe.ask("unknown member", troupe.sync("stranger", generation), version)
    for stale in (generation - 1, generation + 1, -1):
        troupe.ask(f"generation {stale - generation}", troupe.sync(member_id, stale), version)
    if version >= 3:
        troupe.ask("unknown instance", troupe.sync(member_id, generation, group_instance_id="x"), version)
    troupe.ask("other type", troupe.sync(member_id, generation, protocol_type="connect"), min(version, 5))
    if version >= 5:
        troupe.ask("no type", troupe.sync(member_id, generation, protocol_type=None), version)
        troupe.ask("no name", troupe.sync(member_id, generation, protocol_name=None), version)
        troupe.ask("other name", troupe.sync(member_id, generation, protocol_name="sticky"), version)
    troupe.ask("without assignments", troupe.sync(member_id, generation), version)
    troupe.ask("again", troupe.sync(member_id, generation, member_id), version)
    troupe.ask("leaves", troupe.leave(NEWEST_LEAVE, member_id), NEWEST_LEAVE)
    troupe.ask("empty group", troupe.sync(member_id, generation), version)


@scenario(ApiKey.HEARTBEAT)
def wrong_heartbeats_are_refused(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    troupe.ask("no group id", troupe.heartbeat("stranger", 1, group_id=""), version)
    troupe.ask("unknown group", troupe.heartbeat("stranger", 1, group_id=f"{stage.name}-unknown"), version)
    member_id, generation = troupe.new_member("one")
    troupe.ask("before it syncs", troupe.heartbeat(member_id, generation), version)
    troupe.ask("syncs", troupe.sync(member_id, generation, member_id), NEWEST_SYNC)
    troupe.ask("well", troupe.heartbeat(member_id, generation), version)
    troupe.ask("unknown member", troupe.heartbeat("stranger", generation), version)
    troupe.ask("no member", troupe.heartbeat("", generation), version)
    for stale in (generation - 1, generation + 1, -1):
        troupe.ask(f"generation {stale - generation}", troupe.heartbeat(member_id, stale), version)
    if version >= 3:
        troupe.ask("unknown instance", troupe.heartbeat(member_id, generation, group_instance_id="x"), version)
    troupe.ask("leaves", troupe.leave(NEWEST_LEAVE, member_id), NEWEST_LEAVE)
    troupe.ask("empty group", troupe.heartbeat(member_id, generation), version)


@scenario(ApiKey.LEAVE_GROUP)
def members_leave(stage: Stage) -> None:
    troupe, version = Troupe(stage), stage.version
    troupe.ask("no group id", troupe.leave(version, "stranger", group=""), version)
    troupe.ask("unknown group", troupe.leave(version, "stranger", group=f"{stage.name}-unknown"), version)
    member_id, _ = troupe.stable_member("one")
    troupe.ask("unknown member", troupe.leave(version, "stranger"), version)
    troupe.ask("no member", troupe.leave(version, ""), version)
    pending = stage.client.ask(troupe.join(), NEWEST_JOIN)
    troupe.names[pending.member_id] = "pending"
    troupe.ask("one that has an id only", troupe.leave(version, pending.member_id), version)
    if version >= 3:
        troupe.ask("nobody", troupe.leave(version), version)
        several = troupe.leave(version, ("", "x"), "stranger", (member_id, "x"), member_id, member_id)
        troupe.ask("several", several, version)
    else:
        troupe.ask("one", troupe.leave(version, member_id), version)
    troupe.ask("empty group", troupe.leave(version, member_id), version)
