"""What a leader has told in an earlier leader epoch it tells again: its follower may have heard of it too late."""

from pathlib import Path

import pytest

from kavka.broker.partitions.fetch_sessions import Changes
from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
from kavka.protocol.messages.fetch import FetchPartition, FetchResponse, PartitionData
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import topic_id_of
from tests.support.replicas import Replicas

FOLLOWER = 2
KEY = ("visits", topic_id_of("visits"), 0)


@pytest.mark.parametrize("version", [12, 17])
def test_a_high_watermark_that_came_too_late_is_told_again(tmp_path: Path, version: int) -> None:
    replicas = Replicas(tmp_path, version=version)
    replicas.elect(1)
    replicas.catch_up([2])
    replicas.produce(1, b"a")
    replicas.step(2)
    way = replicas.leaders[2, 1]

    def elect_first(answer: FetchResponse) -> None:
        if any(part.high_watermark == 1 for each in answer.responses for part in each.partitions):
            way.tamper = lambda answer: None
            replicas.elect(1)

    way.tamper = elect_first
    replicas.catch_up([2])

    assert replicas.epochs[0] == 1
    assert replicas.log(2).high_watermark == replicas.log(1).high_watermark == 1
    replicas.close()


@pytest.mark.parametrize("version", [12, 17])
def test_a_high_watermark_beside_a_diverging_epoch_is_told_again(tmp_path: Path, version: int) -> None:
    replicas = Replicas(tmp_path, version=version)
    replicas.elect(1)
    replicas.produce(1, b"a")
    for _ in range(2):
        replicas.step(2)
    assert (replicas.log(1).high_watermark, replicas.log(2).high_watermark) == (1, 0)
    # Who leads and appends nothing has an epoch that the next leader does not know.
    replicas.elect(2)
    replicas.elect(1)

    replicas.catch_up([2])

    assert replicas.log(2).epochs.entries == ((0, 0),)
    assert replicas.log(2).high_watermark == 1
    replicas.close()


def asked(leader_epoch: int) -> FetchPartition:
    return FetchPartition(
        partition=0, current_leader_epoch=leader_epoch, fetch_offset=1, log_start_offset=0, partition_max_bytes=1 << 20
    )


@pytest.mark.parametrize("way", ["ordinary", "short"])
@pytest.mark.parametrize("leader_epoch", [4, 5])
def test_both_ways_know_what_was_told_in_this_epoch_only(tmp_path: Path, way: str, leader_epoch: int) -> None:
    core = BrokerCore(tmp_path)
    core.create("visits")
    session = FollowerFetchSession(
        1, [(KEY, asked(4))], from_follower=True, uses_topic_ids=True, now_ms=0, replica_id=FOLLOWER
    )
    session.watch(KEY, core.replicas.partitions["visits", 0])
    told = PartitionData(partition_index=0, error_code=0, high_watermark=1, log_start_offset=0, records=b"")
    assert session.news([(KEY, told, 0)], 1) == [(KEY, told)]
    assert session.news([(KEY, told, 0)], 1) == []

    if way == "short":
        assert session.take_in(1, [(KEY[1], asked(leader_epoch))]) == 2
    else:
        session.go_on(1, True, Changes([(KEY, asked(leader_epoch))]))

    assert session.news([(KEY, told, 0)], 2) == ([] if leader_epoch == 4 else [(KEY, told)])
    core.close()
