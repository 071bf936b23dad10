"""Brokers whose logs are read, cut and moved: no socket, no clock."""

import random
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Any, NamedTuple

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kavka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka.protocol.messages.offset_for_leader_epoch import EpochEndOffset as EndOfEpoch
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kavka.protocol.records.batch import Record, build_batch, patch_offsets
from kavka.protocol.schema import Request, Response

NEWEST_FETCH = 18


class Stored(NamedTuple):
    """A record of a simulated log: its timestamp is its offset."""

    epoch: int
    value: bytes


class Log:
    """One partition."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.epoch = 0
        self.start = 0
        self.records: list[Stored] = []

    @property
    def end(self) -> int:
        return len(self.records)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """(the newest epoch up to this one, where it ends), as OffsetForLeaderEpoch says it."""
        below = [number for number, record in enumerate(self.records) if record.epoch <= epoch]
        if epoch >= self.epoch:
            return epoch if epoch == self.epoch else -1, self.end if epoch == self.epoch else -1
        if not below:
            return -1, -1
        return self.records[below[-1]].epoch, below[-1] + 1

    def read(self, offset: int, max_bytes: int, per_batch: int, corrupt: Collection[int] = ()) -> bytes:
        """Whole batches from the one that has `offset` on: each of one epoch, with `per_batch` offsets at most."""
        data = b""
        first = offset - offset % per_batch
        while offset < self.end and first < self.end and (not data or len(data) < max_bytes):
            records = self.records[max(first, self.start) : first + per_batch]
            first = max(first, self.start)
            same = [record for record in records if record.epoch == records[0].epoch]
            if first + len(same) <= offset:
                first += len(same)
                continue
            batch = bytearray(
                build_batch([Record(timestamp_ms=first + n, value=each.value) for n, each in enumerate(same)])
            )
            patch_offsets(batch, 0, first, same[0].epoch)
            if first in corrupt:
                batch[-1] ^= 1
            data += batch
            first += len(same)
        return data


class SimulatedCluster:
    """The brokers and their metadata. `Metadata` as machines see it, too."""

    def __init__(self, dice: random.Random, topics: Mapping[str, int], nodes: int = 3) -> None:
        self.dice = dice
        self.nodes = {number: Node(number, "h", 9000 + number) for number in range(nodes)}
        self.ids = {name: bytes(15) + bytes([number + 1]) for number, name in enumerate(topics)}
        self.logs = {
            TopicPartition(name, number): Log(dice.randrange(nodes))
            for name, partitions in topics.items()
            for number in range(partitions)
        }
        self.fetch_version = dice.choice([11, 12, 13, 16, NEWEST_FETCH])
        self.max_batch = dice.choice([1, 7, 50])
        self.closest: int | None = None
        """The replica that leaders send readers with a rack to (KIP-392)."""
        self._has_rack = False
        """Who asks."""
        self.corrupt: set[int] = set()
        """Batches that begin at these offsets have other bytes than were written."""
        self.sessions: dict[int, dict[TopicPartition, Any]] = {}
        self.session_epochs: dict[int, int] = {}
        self.session_ids: dict[int, dict[str, bytes]] = {}
        self._session_ids = count(1)
        self.wants_update = False
        self.version = 0
        self.cluster = Cluster()
        self.refresh()

    # What is known of it

    def refresh(self) -> None:
        self.version += 1
        self.wants_update = False
        topics = {}
        for name, identity in self.ids.items():
            partitions = {
                partition.partition: PartitionInfo(log.leader, log.epoch, tuple(self.nodes), tuple(self.nodes))
                for partition, log in self.logs.items()
                if partition.topic == name
            }
            topics[name] = TopicInfo(name, identity, 0, False, partitions)
        self.cluster = Cluster("c", 0, self.nodes, topics, self.version)

    def request_update(self) -> int:
        self.wants_update = True
        return self.version

    def learn_leaders(self, leaders: Mapping[TopicPartition, Any], nodes: Iterable[Node]) -> set[TopicPartition]:
        known = {partition: self.cluster.partition(partition) for partition in leaders}
        changed = {
            partition
            for partition, told in leaders.items()
            if (info := known[partition]) is None or told.leader_epoch > info.leader_epoch
        }
        if changed:
            self.refresh()
        return changed

    # What happens to it

    def append(self, partition: TopicPartition, records: int) -> None:
        log = self.logs[partition]
        log.records += [Stored(log.epoch, b"%d:%d" % (log.epoch, log.end + n)) for n in range(records)]

    def move(self, partition: TopicPartition, cut: int = 0) -> None:
        """Another leader; in an unclean election it lacks the last `cut` records."""
        log = self.logs[partition]
        log.leader = self.dice.choice(list(self.nodes))
        log.epoch += 1
        if cut:
            del log.records[max(log.end - cut, log.start) :]

    def make_anew(self, topic: str) -> None:
        """Delete it, and make another one under its name."""
        self.ids[topic] = bytes(14) + b"\1" + self.ids[topic][-1:]
        for partition in self.logs:
            if partition.topic == topic:
                self.logs[partition] = Log(self.logs[partition].leader)

    # What it answers

    def answer(self, node_id: int, request: Request, version: int) -> Response:
        if isinstance(request, FetchRequest):
            answer = self._fetch(node_id, request)
            if version < 16:
                answer.node_endpoints = []
            if version < 12:
                for row in [row for topic in answer.responses for row in topic.partitions]:
                    row.current_leader = LeaderIdAndEpoch()
            return answer
        if isinstance(request, ListOffsetsRequest):
            return self._list(node_id, request)
        assert isinstance(request, OffsetForLeaderEpochRequest)
        return self._ends(node_id, request)

    def _fetch(self, node_id: int, request: FetchRequest) -> FetchResponse:
        names = {identity: name for name, identity in self.ids.items()}
        self._has_rack = bool(request.rack_id)
        session, epoch = request.session_id, request.session_epoch
        if epoch == -1:
            self.sessions.pop(session, None)
            return FetchResponse(session_id=0, responses=[])
        if epoch == 0:
            self.sessions.pop(session, None)
            session = next(self._session_ids)
            self.sessions[session] = {}
        elif session not in self.sessions:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=0, responses=[])
        elif self.session_epochs[session] != epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=0, responses=[])
        self.session_epochs[session] = epoch + 1
        asked = {topic.topic_id for topic in request.topics if not topic.topic}
        if self.session_ids.setdefault(session, dict(self.ids)) != self.ids or not asked <= names.keys():
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, session_id=0, responses=[])
        there = self.sessions[session]
        for gone in request.forgotten_topics_data:
            for number in gone.partitions:
                del there[TopicPartition(gone.topic or names[gone.topic_id], number)]
        for topic in request.topics:
            for row in topic.partitions:
                there[TopicPartition(topic.topic or names[topic.topic_id], row.partition)] = row
        found: dict[str, list[PartitionData]] = {}
        for partition, row in there.items():
            data = self._read(node_id, partition, row)
            if (
                data.records
                or data.error_code
                or data.preferred_read_replica >= 0
                or data.diverging_epoch.end_offset >= 0
                or epoch == 0
            ):
                found.setdefault(partition.topic, []).append(data)
        responses = [
            FetchableTopicResponse(topic=name, topic_id=self.ids[name], partitions=rows) for name, rows in found.items()
        ]
        nodes = [NodeEndpoint(node_id=node.id, host=node.host, port=node.port) for node in self.nodes.values()]
        return FetchResponse(session_id=session, responses=responses, node_endpoints=nodes)

    def _read(self, node_id: int, partition: TopicPartition, row: Any) -> PartitionData:
        log = self.logs[partition]
        closest = self.closest if self._has_rack else None
        number, offset = partition.partition, row.fetch_offset
        if node_id not in (log.leader, self.closest):
            leader = LeaderIdAndEpoch(leader_id=log.leader, leader_epoch=log.epoch)
            refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return PartitionData(
                partition_index=number, error_code=refused, high_watermark=-1, records=None, current_leader=leader
            )
        code = _epoch_error(row.current_leader_epoch, log.epoch)
        if not code and row.last_fetched_epoch >= 0:
            epoch, end = log.end_of(row.last_fetched_epoch)
            if epoch < row.last_fetched_epoch or end < offset:
                diverging = EpochEndOffset(epoch=epoch, end_offset=max(end, 0))
                return PartitionData(
                    partition_index=number,
                    error_code=0,
                    high_watermark=log.end,
                    records=None,
                    diverging_epoch=diverging,
                )
        if not code and not log.start <= offset <= log.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        records = b"" if code else log.read(offset, row.partition_max_bytes, self.max_batch, self.corrupt)
        if closest is not None and log.leader == node_id != closest and not code:
            return PartitionData(
                partition_index=number,
                error_code=0,
                high_watermark=log.end,
                preferred_read_replica=closest,
                records=b"",
            )
        return PartitionData(
            partition_index=number,
            error_code=code,
            high_watermark=log.end,
            last_stable_offset=log.end,
            log_start_offset=log.start,
            records=records,
        )

    def _list(self, node_id: int, request: ListOffsetsRequest) -> Response:
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                log = self.logs[TopicPartition(topic.name, row.partition_index)]
                code = _epoch_error(row.current_leader_epoch, log.epoch)
                if log.leader != node_id:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                offset = {-1: log.end, -2: log.start}.get(row.timestamp, max(row.timestamp, log.start))
                if row.timestamp >= log.end:
                    offset = -1
                if code:
                    offset = -1
                rows.append(
                    ListOffsetsPartitionResponse(
                        partition_index=row.partition_index, error_code=code, offset=offset, timestamp=offset
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        return ListOffsetsResponse(topics=topics)

    def _ends(self, node_id: int, request: OffsetForLeaderEpochRequest) -> Response:
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                log = self.logs[TopicPartition(topic.topic, row.partition)]
                code = _epoch_error(row.current_leader_epoch, log.epoch)
                if log.leader != node_id:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                epoch, end = (-1, -1) if code else log.end_of(row.leader_epoch)
                rows.append(EndOfEpoch(error_code=code, partition=row.partition, leader_epoch=epoch, end_offset=end))
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
        return OffsetForLeaderEpochResponse(topics=topics)


def _epoch_error(asked: int, known: int) -> int:
    if 0 <= asked < known:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if asked > known else ErrorCode.NONE
