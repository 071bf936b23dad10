"""A replica that was told to stop, and whose log stays, does as an older order says no more than one that goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.storage.partition_log import PartitionLog
from tests.support.replicas import Replicas

ME, OTHER = 1, 2


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    made = Replicas(tmp_path)
    made.epochs[0] = 6
    made.elect(ME)
    made.produce(ME, b"kept")
    yield made
    made.close()


def stop(replicas: Replicas, *, delete: bool = False) -> None:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=7, delete_partition=delete)
    topics = [StopReplicaTopicState(topic_name=Replicas.TOPIC, partition_states=[state])]
    replicas.cores[ME].replicas.stop_replica(
        StopReplicaRequest(controller_id=1, controller_epoch=1, broker_epoch=1, topic_states=topics)
    )


def log_of(replicas: Replicas) -> PartitionLog | None:
    return replicas.cores[ME].services.logs.get(Replicas.TOPIC, 0)


def test_an_order_from_before_the_stop_is_refused(replicas: Replicas) -> None:
    log = replicas.log(ME)
    stop(replicas)

    assert replicas.answer(ME, ME, 0, 3) == [ErrorCode.STALE_CONTROLLER_EPOCH]

    assert (Replicas.TOPIC, 0) not in replicas.cores[ME].replicas.partitions
    assert log.epochs.entries == ((7, 0),)


@pytest.mark.parametrize("epoch", [7, 8])
def test_a_later_order_counts_and_so_does_the_last_one_again(replicas: Replicas, epoch: int) -> None:
    stop(replicas)

    assert replicas.answer(ME, OTHER, 0, epoch) == [ErrorCode.NONE]

    assert replicas.cores[ME].replicas.partitions[Replicas.TOPIC, 0].role.leader_epoch == epoch
    stop(replicas)
    assert replicas.answer(ME, OTHER, 0, epoch - 1) == [ErrorCode.STALE_CONTROLLER_EPOCH]


def test_what_was_deleted_begins_from_nothing(replicas: Replicas) -> None:
    stop(replicas)
    stop(replicas, delete=True)
    assert log_of(replicas) is None

    assert replicas.answer(ME, ME, 0, 0) == [ErrorCode.NONE]
