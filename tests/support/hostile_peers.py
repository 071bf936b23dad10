"""What brokers and controllers send that are none, or no more, or mean another topic: seeded, each wrong in one thing.

A guard of the receiver must refuse every one of them, so that nothing at all changes there.
"""

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kavka.protocol.api import ApiKey
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.broker_handlers import update_metadata

STRANGER: Final = 77
EDGES: Final = (-(1 << 31), -2, -1, 0, 1, 5, 1 << 30, (1 << 31) - 1)
WIDE_EDGES: Final = (-(1 << 63), -1, 0, 1, 3, 1 << 40, (1 << 63) - 1)


class Truth(NamedTuple):
    """What is in force at the broker that hears it."""

    target: int
    """Its id."""
    follower: int
    """Another replica's broker."""
    topic: str
    topic_id: bytes
    partitions: int
    leader_epoch: int
    """Of all partitions."""
    controller_epoch: int
    broker_epoch: int
    end_offset: int
    """Of all partitions, and of their followers."""


Frame = tuple[ApiKey, int, bytes]
"""(key, version, body)"""
Sends = Callable[[Truth, random.Random], Frame]


def frame_of(sends: Sends, truth: Truth, dice: random.Random, number: int) -> bytes:
    """A request as it comes, without its size; `number` is its correlation id."""
    key, version, body = sends(truth, dice)
    return encode_request_header(key, version, number, "peer") + body


def random_bytes(truth: Truth, dice: random.Random) -> Frame:
    key, version = dice.choice(
        [
            (ApiKey.LEADER_AND_ISR, 7),
            (ApiKey.STOP_REPLICA, 4),
            (ApiKey.UPDATE_METADATA, 8),
            (ApiKey.CONTROLLED_SHUTDOWN, 3),
            (ApiKey.FETCH, 17),
            (ApiKey.LIST_OFFSETS, 6),
            (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4),
            (ApiKey.WRITE_TXN_MARKERS, 1),
            (ApiKey.ALTER_PARTITION, 3),
        ]
    )
    # Its first field is never an order's that is in force.
    return key, version, b"\xff" * 8 + dice.randbytes(dice.randrange(400))


def cut_short(truth: Truth, dice: random.Random) -> Frame:
    key, version, body = dice.choice([wrong_order, wrong_stop, wrong_metadata, wrong_fetch])(truth, dice)
    return key, version, body[: dice.randrange(len(body))]


def wrong_order(truth: Truth, dice: random.Random) -> Frame:
    """An order in which one thing at least is wrong."""
    wrong = dice.choice(["controller", "broker", "topic", "epoch", "replicas", "name", "index", "negative"])
    state = LeaderAndIsrPartitionState(
        partition_index=dice.choice([-1, -(1 << 31)]) if wrong == "index" else dice.randrange(truth.partitions),
        controller_epoch=truth.controller_epoch,
        leader=dice.choice([truth.target, truth.follower, STRANGER, -1, -2]),
        leader_epoch=dice.choice([-1, -(1 << 31)])
        if wrong == "negative"
        else truth.leader_epoch + dice.randrange(1, 9),
        isr=[dice.choice([truth.target, truth.follower, STRANGER]) for _ in range(dice.randrange(3))],
        partition_epoch=9,
        replicas=[truth.target, truth.follower],
        is_new=dice.random() < 0.5,
        leader_recovery_state=dice.choice([0, 1, 2, -1]),
    )
    if wrong == "epoch":
        state.leader_epoch = dice.randrange(truth.leader_epoch + 1)
    if wrong == "replicas":
        state.replicas = [STRANGER, truth.follower]
        state.partition_index = dice.choice([0, 1, 9, 1 << 30])
    name = dice.choice(["..", "a/b", "", "x" * 250]) if wrong == "name" else truth.topic
    topic_id = dice.randbytes(16) if wrong == "topic" else truth.topic_id
    request = LeaderAndIsrRequest(
        controller_id=dice.choice([truth.target, STRANGER]),
        controller_epoch=dice.choice([-5, 0, truth.controller_epoch - 1])
        if wrong == "controller"
        else truth.controller_epoch,
        broker_epoch=dice.choice([0, truth.broker_epoch - 1]) if wrong == "broker" else truth.broker_epoch,
        topic_states=[LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=[state])],
        live_leaders=[],
    )
    return ApiKey.LEADER_AND_ISR, 7, encode(request, 7)


def wrong_stop(truth: Truth, dice: random.Random) -> Frame:
    wrong = dice.choice(["controller", "broker", "topic", *(["epoch"] if truth.leader_epoch else [])])
    state = StopReplicaPartitionState(
        partition_index=dice.randrange(truth.partitions),
        leader_epoch=dice.randrange(truth.leader_epoch) if wrong == "epoch" else -2,
        delete_partition=wrong != "topic" or dice.random() < 0.5,
    )
    name = dice.choice(["others", "..", "../visits", ""]) if wrong == "topic" else truth.topic
    request = StopReplicaRequest(
        controller_id=STRANGER,
        controller_epoch=dice.choice([-1, truth.controller_epoch - 1])
        if wrong == "controller"
        else truth.controller_epoch,
        broker_epoch=dice.choice([0, truth.broker_epoch - 1]) if wrong == "broker" else truth.broker_epoch,
        topic_states=[StopReplicaTopicState(topic_name=name, partition_states=[state])],
    )
    return ApiKey.STOP_REPLICA, 4, encode(request, 4)


def wrong_metadata(truth: Truth, dice: random.Random) -> Frame:
    is_deposed = dice.random() < 0.5
    request: UpdateMetadataRequest = update_metadata({truth.topic: [-2] * truth.partitions}, brokers={})
    request.controller_epoch = truth.controller_epoch - 1 if is_deposed else truth.controller_epoch
    request.broker_epoch = truth.broker_epoch if is_deposed else dice.choice([0, truth.broker_epoch - 1])
    return ApiKey.UPDATE_METADATA, 8, encode(request, 8)


def wrong_fetch(truth: Truth, dice: random.Random) -> Frame:
    """As a follower: of an unknown broker, in another epoch, of another topic, or out of range."""
    wrong = dice.choice(["replica", "epoch", "topic", "index", "range"])
    replica_id = dice.choice([0, STRANGER, (1 << 31) - 1, truth.target]) if wrong == "replica" else truth.follower
    epoch = (
        dice.choice([each for each in EDGES if each not in (-1, truth.leader_epoch)])
        if wrong == "epoch"
        else truth.leader_epoch
    )
    offset = (
        dice.choice([-1, -(1 << 63), truth.end_offset + 1, 1 << 40, (1 << 63) - 1])
        if wrong == "range"
        else dice.randrange(truth.end_offset + 2)
    )
    part = FetchPartition(
        partition=dice.choice([-1, 9, 1 << 30]) if wrong == "index" else dice.randrange(truth.partitions),
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=dice.choice(WIDE_EDGES),
        partition_max_bytes=dice.choice(EDGES),
    )
    topic_id = dice.choice([bytes(16), dice.randbytes(16)]) if wrong == "topic" else truth.topic_id
    request = FetchRequest(
        max_wait_ms=dice.choice([-1, 0]),
        min_bytes=dice.choice(EDGES),
        max_bytes=dice.choice(EDGES),
        session_id=dice.choice(EDGES),
        session_epoch=dice.choice([-1, 0, 0, 1, (1 << 31) - 1]),
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=dice.choice(WIDE_EDGES)),
        topics=[FetchTopic(topic_id=topic_id, partitions=[part] * dice.randrange(1, 3))],
        forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=[-1, 0])] * dice.randrange(2),
    )
    return ApiKey.FETCH, 17, encode(request, 17)


def wrong_questions(truth: Truth, dice: random.Random) -> Frame:
    replica_id = dice.choice(EDGES)
    if dice.random() < 0.5:
        part: Any = ListOffsetsPartition(
            partition_index=dice.choice(EDGES),
            current_leader_epoch=dice.choice(EDGES),
            timestamp=dice.choice((*WIDE_EDGES, -2, -3, -4)),
        )
        topics = [ListOffsetsTopic(name=dice.choice([truth.topic, "others", ""]), partitions=[part])]
        body = encode(ListOffsetsRequest(replica_id=replica_id, isolation_level=0, topics=topics), 6)
        return ApiKey.LIST_OFFSETS, 6, body
    part = OffsetForLeaderPartition(
        partition=dice.choice(EDGES), current_leader_epoch=dice.choice(EDGES), leader_epoch=dice.choice(EDGES)
    )
    asked = [OffsetForLeaderTopic(topic=dice.choice([truth.topic, "others", ""]), partitions=[part])]
    body = encode(OffsetForLeaderEpochRequest(replica_id=replica_id, topics=asked), 4)
    return ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, body


HOSTILITIES: Final[tuple[Sends, ...]] = (
    random_bytes,
    cut_short,
    wrong_order,
    wrong_stop,
    wrong_metadata,
    wrong_fetch,
    wrong_questions,
)
