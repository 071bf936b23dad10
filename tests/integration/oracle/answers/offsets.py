"""Committed offsets, and groups as administrators see them: good requests and bad ones."""

from collections.abc import Sequence
from typing import Any, Final

from kavka.protocol.api import ApiKey
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kavka.protocol.messages.delete_groups import DeleteGroupsRequest
from kavka.protocol.messages.describe_groups import DescribeGroupsRequest
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.list_groups import ListGroupsRequest
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.integration.oracle.answers.groups import NEWEST_JOIN, NEWEST_LEAVE, TIME_TO_LOAD_S, Troupe
from tests.integration.oracle.answers.stage import NOWHERE, Stage, scenario
from tests.support.processes import wait_until

COMMIT, FETCH, DESCRIBE, LIST, DELETE = 8, 8, 5, 4, 2
"""Versions that all oracles have, for the steps that a scenario is not about."""
SUBSCRIPTION: Final = bytes.fromhex("0001 00000001 0005") + b"topic" + bytes.fromhex("ffffffff 00000000")
Place = tuple[str, int, int]
"""topic, partition, offset"""


def by_topic(places: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    return topics


class Books:
    """Where a group's offsets are kept: makes requests in the scenario's version, by name or by id."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.troupe = Troupe(stage)
        self.topic = stage.topic("t", 3)
        self.ids = {self.topic: stage.id_of(self.topic), "nowhere": NOWHERE}

    def commit(self, version: int, *places: Place, metadata: str | None = "", **given: Any) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for name, partition, offset in places:
            part = OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            if version >= 6:
                part.committed_leader_epoch = 0
            topics.setdefault(name, []).append(part)
        named = [
            OffsetCommitRequestTopic(name=name, partitions=parts)
            if version < 10
            else OffsetCommitRequestTopic(topic_id=self.ids[name], partitions=parts)
            for name, parts in topics.items()
        ]
        return OffsetCommitRequest(**{"group_id": self.troupe.group, **given}, topics=named)

    def fetch(
        self, version: int, *places: tuple[str, int], group: str | None = None, stable: bool = False
    ) -> OffsetFetchRequest:
        """Of no places: all there are."""
        group = self.troupe.group if group is None else group
        if version < 8:
            old = [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(places).items()
            ]
            request = OffsetFetchRequest(group_id=group, topics=old or None)
        else:
            request = OffsetFetchRequest(groups=[self.group_of(version, group, places)])
        if version >= 7:
            request.require_stable = stable
        return request

    def group_of(
        self, version: int, group: str, places: Sequence[tuple[str, int]], **given: Any
    ) -> OffsetFetchRequestGroup:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            if version < 10
            else OffsetFetchRequestTopics(topic_id=self.ids[name], partition_indexes=indexes)
            for name, indexes in by_topic(places).items()
        ]
        return OffsetFetchRequestGroup(group_id=group, topics=topics or None, **given)

    def ask(self, label: str, request: Any, version: int) -> Any:
        return self.troupe.ask(label, request, version)


@scenario(ApiKey.OFFSET_COMMIT)
def offsets_are_committed_without_a_group(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    t = books.topic
    books.ask("both", books.commit(version, (t, 0, 5), (t, 1, 6)), version)
    books.ask("null metadata", books.commit(version, (t, 0, 7), metadata=None), version)
    books.ask("unknown partition", books.commit(version, (t, 0, 8), (t, 3, 8)), version)
    books.ask("unknown topic", books.commit(version, ("nowhere", 0, 8), (t, 1, 9)), version)
    books.ask("nothing", books.commit(version), version)
    books.ask("long metadata", books.commit(version, (t, 0, 99), metadata="x" * 4097), version)
    books.ask("longest metadata", books.commit(version, (t, 0, 10), metadata="x" * 4096), version)
    books.ask("negative", books.commit(version, (t, 1, -3)), version)
    books.ask("a member of nothing", books.commit(version, (t, 0, 11), member_id="stranger"), version)
    books.ask("a generation of nothing", books.commit(version, (t, 0, 12), generation_id_or_member_epoch=3), version)
    books.ask("the empty group", books.commit(version, (t, 0, 13), group_id=""), version)
    unknown = books.commit(version, (t, 0, 1), group_id=f"{stage.name}-x", generation_id_or_member_epoch=1)
    books.ask("unknown group", unknown, version)
    if version in (2, 3, 4):
        books.ask("retention", books.commit(version, (t, 1, 14), retention_time_ms=100_000), version)
    books.ask("what stands", books.fetch(FETCH), FETCH)
    books.ask("described", DescribeGroupsRequest(groups=[books.troupe.group]), DESCRIBE)


@scenario(ApiKey.OFFSET_COMMIT)
def members_commit_offsets(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    t, troupe = books.topic, books.troupe
    member_id, generation = troupe.new_member("one")

    def commit(label: str, generation_id: int, by: str, **given: Any) -> None:
        request = books.commit(version, (t, 0, 5), member_id=by, generation_id_or_member_epoch=generation_id, **given)
        books.ask(label, request, version)

    commit("before it syncs", generation, member_id)
    books.ask("syncs", troupe.sync(member_id, generation, member_id), 5)
    commit("well", generation, member_id)
    for stale in (generation - 1, generation + 1, -1):
        commit(f"generation {stale - generation}", stale, member_id)
    commit("stranger", generation, "stranger")
    commit("no member", generation, "")
    commit("nobody at all", -1, "")
    if version >= 7:
        commit("unknown instance", generation, member_id, group_instance_id="x")
    pending = stage.client.ask(troupe.join(), NEWEST_JOIN)
    troupe.names[pending.member_id] = "pending"
    commit("one that has an id only", generation, pending.member_id)
    books.ask("leave", troupe.leave(NEWEST_LEAVE, pending.member_id, member_id), NEWEST_LEAVE)
    commit("after it left", generation, member_id)
    commit("to the empty group", -1, "")
    books.ask("what stands", books.fetch(FETCH), FETCH)


@scenario(ApiKey.OFFSET_FETCH)
def offsets_are_fetched(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    t, group = books.topic, books.troupe.group
    books.ask("unknown group", books.fetch(version, (t, 0)), version)
    commit = books.commit(COMMIT, (t, 0, 5), metadata="m")
    books.ask("commit", commit, COMMIT)
    books.ask("known and unknown", books.fetch(version, (t, 0), (t, 1), (t, 7), ("nowhere", 0)), version)
    if version >= 2:
        books.ask("all", books.fetch(version), version)
        books.ask("all of nobody", books.fetch(version, group=f"{stage.name}-x"), version)
    if version >= 7:
        books.ask("stable", books.fetch(version, (t, 0), stable=True), version)
        books.ask("all stable", books.fetch(version, stable=True), version)
    books.ask("no group id", books.fetch(version, (t, 0), group=""), version)
    if version >= 8:
        several = [books.group_of(version, each, [(t, 0)]) for each in (f"{stage.name}-x", group)]
        books.ask("several", OffsetFetchRequest(groups=several), version)
    if version >= 9:
        for member_id, epoch in (("stranger", 3), (None, 3), ("stranger", -1)):
            asked = books.group_of(version, group, [(t, 0)], member_id=member_id, member_epoch=epoch)
            books.ask(f"{member_id} {epoch}", OffsetFetchRequest(groups=[asked]), version)


@scenario(ApiKey.OFFSET_DELETE)
def offsets_are_deleted(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    t, troupe = books.topic, books.troupe

    def delete(label: str, *places: tuple[str, int], group: str | None = None) -> None:
        topics = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
            for name, index in places
        ]
        request = OffsetDeleteRequest(group_id=troupe.group if group is None else group, topics=topics)
        books.ask(label, request, version)

    delete("unknown group", (t, 0))
    delete("no group id", (t, 0), group="")
    books.ask("commit", books.commit(COMMIT, (t, 0, 5), (t, 1, 5)), COMMIT)
    delete("known and unknown", (t, 0), (t, 7), ("nowhere", 0))
    delete("again", (t, 0))
    delete("nothing")
    delete("only unknown", ("nowhere", 0))
    books.ask("what stands", books.fetch(FETCH), FETCH)
    subscription = SUBSCRIPTION.replace(b"\x00\x05topic", len(t).to_bytes(2, "big") + t.encode())
    other = stage.topic("other")
    books.ask("commit other", books.commit(COMMIT, (other, 0, 5)), COMMIT)
    troupe.stable_member("one", protocols=(("range", subscription),))
    delete("subscribed", (t, 1), (other, 0))
    troupe.group = f"{stage.name}-connect"
    books.ask("commit connect's", books.commit(COMMIT, (t, 1, 5)), COMMIT)
    troupe.stable_member("connect", protocol_type="connect")
    delete("of another type", (t, 1))


@scenario(ApiKey.TXN_OFFSET_COMMIT)
def offsets_are_committed_in_transactions(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    t, group = books.topic, books.troupe.group
    transactional_id = f"{stage.name}-txn"
    producer = _producer_of(stage, transactional_id)

    def commit(label: str, *places: Place, metadata: str | None = "", **changed: Any) -> None:
        topics = [
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for name, partition, offset in places
        ]
        fields = {"transactional_id": transactional_id, "group_id": group, "member_id": "", **producer, **changed}
        books.ask(label, TxnOffsetCommitRequest(topics=topics, **fields), version)

    if version < 5:
        commit("not added", (t, 0, 5))
        add = AddOffsetsToTxnRequest(transactional_id=transactional_id, group_id=group, **producer)
        books.ask("add", add, 3)
    commit("well", (t, 0, 5))
    commit("unknown", ("nowhere", 0, 5), (t, 5, 5))
    commit("long metadata", (t, 1, 5), metadata="x" * 4097)
    commit("no group id", (t, 0, 5), group_id="")
    if version >= 3:
        commit("a generation of nothing", (t, 1, 5), generation_id=4)
        commit("a member of nothing", (t, 1, 5), member_id="stranger")
    commit("an old epoch", (t, 2, 6), producer_epoch=producer["producer_epoch"] - 1)
    commit("another producer", (t, 2, 7), producer_id=producer["producer_id"] + 1_000_000)
    books.ask("pending", books.fetch(FETCH, (t, 0), (t, 1)), FETCH)
    books.ask("pending, stable", books.fetch(FETCH, (t, 0), (t, 1), stable=True), FETCH)
    end = EndTxnRequest(transactional_id=transactional_id, committed=True, **producer)
    ended = books.stage.client.ask(end, 5 if version >= 5 else 3)
    stage.note("ended", ended.error_code)
    stable = books.fetch(FETCH, (t, 0), (t, 1), stable=True)
    wait_until(
        lambda: all(each.partitions[0].error_code == 0 for each in stage.client.ask(stable, FETCH).groups[0].topics),
        TIME_TO_LOAD_S,
        "the transaction does not end",
    )
    books.ask("ended, stable", stable, FETCH)


def _producer_of(stage: Stage, transactional_id: str) -> dict[str, int]:
    """A producer that has been fenced once, so that there is an old epoch."""

    def ready() -> bool:
        found = stage.client.ask(FindCoordinatorRequest(key=transactional_id, key_type=1), 3)
        return bool(found.error_code == 0)

    wait_until(ready, TIME_TO_LOAD_S, "no transaction coordinator")
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    given: list[Any] = []

    def initialised() -> bool:
        given.append(stage.client.ask(init, 4))
        return bool(given[-1].error_code == 0)

    wait_until(initialised, TIME_TO_LOAD_S, "no producer id")
    given.append(stage.client.ask(init, 4))
    return {"producer_id": given[-1].producer_id, "producer_epoch": given[-1].producer_epoch}


@scenario(ApiKey.LIST_GROUPS)
def groups_are_listed(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    troupe = books.troupe
    books.ask("commit", books.commit(COMMIT, (books.topic, 0, 5)), COMMIT)
    troupe.group = f"{stage.name}-joined"
    troupe.stable_member("one")

    def listed(label: str, **filters: Any) -> None:
        answer = stage.client.ask(ListGroupsRequest(**filters), version)
        answer.groups = [each for each in answer.groups if each.group_id.startswith(stage.name)]
        troupe.note(label, answer)

    listed("all")
    if version >= 4:
        for states in (["Stable"], ["stable", "EMPTY"], ["Dead"], ["nonsense"], [""]):
            listed(f"states {states}", states_filter=states)
    if version >= 5:
        for types in (["classic"], ["CLASSIC", "consumer"], ["consumer"]):
            listed(f"types {types}", types_filter=types)


@scenario(ApiKey.DESCRIBE_GROUPS)
def groups_are_described(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    troupe = books.troupe

    def described(label: str, *groups: str, operations: bool = False) -> None:
        request = DescribeGroupsRequest(groups=list(groups))
        if operations:
            request.include_authorized_operations = True
        books.ask(label, request, version)

    described("unknown, and none", f"{stage.name}-x", "")
    described("nothing")
    books.ask("commit", books.commit(COMMIT, (books.topic, 0, 5)), COMMIT)
    described("holds offsets", troupe.group)
    member_id, generation = troupe.new_member("one")
    described("joined", troupe.group)
    books.ask("syncs", troupe.sync(member_id, generation, member_id), 5)
    described("stable", troupe.group, f"{stage.name}-x", troupe.group)
    if version >= 3:
        described("operations", troupe.group, f"{stage.name}-x", operations=True)
    books.ask("leaves", troupe.leave(NEWEST_LEAVE, member_id), NEWEST_LEAVE)
    described("empty", troupe.group)


@scenario(ApiKey.DELETE_GROUPS)
def groups_are_deleted(stage: Stage) -> None:
    books, version = Books(stage), stage.version
    troupe = books.troupe

    def delete(label: str, *groups: str) -> None:
        books.ask(label, DeleteGroupsRequest(groups_names=list(groups)), version)

    delete("unknown, and none", f"{stage.name}-x", "")
    delete("nothing")
    books.ask("commit", books.commit(COMMIT, (books.topic, 0, 5)), COMMIT)
    delete("holds offsets, twice", troupe.group, troupe.group)
    books.ask("nothing left", books.fetch(FETCH), FETCH)
    books.ask("commit again", books.commit(COMMIT, (books.topic, 0, 5)), COMMIT)
    member_id, _ = troupe.stable_member("one")
    delete("stable", troupe.group)
    books.ask("leaves", troupe.leave(NEWEST_LEAVE, member_id), NEWEST_LEAVE)
    delete("empty", troupe.group)
    books.ask("gone", DescribeGroupsRequest(groups=[troupe.group]), DESCRIBE)
