"""A replica that lost its records with a disk may lead again when its fetches show that it has all of its leader's."""

from pathlib import Path

import pytest

from tests.support.replicas import Replicas

LEADER, LOST = 1, 2


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    made = Replicas(tmp_path)
    made.elect(LEADER)
    for number in range(5):
        made.produce(LEADER, b"%d" % number)
    made.cores[LOST].replicas.partitions[Replicas.TOPIC, 0].is_unproven = True
    return made


def is_unproven(replicas: Replicas) -> bool:
    return replicas.cores[LOST].replicas.partitions[Replicas.TOPIC, 0].is_unproven


def test_a_replica_that_has_copied_records_may_be_behind_all_the_same(replicas: Replicas) -> None:
    replicas.step(LOST)

    assert replicas.log(LOST).log_end_offset == 5
    assert is_unproven(replicas)
    replicas.step(LOST)
    assert not is_unproven(replicas)
    replicas.close()


def test_an_answer_that_says_nothing_of_it_proves_it_too(replicas: Replicas) -> None:
    # Nothing is left to say but that there is nothing new.
    replicas.log(LEADER).advance_high_watermark(5)
    replicas.step(LOST)
    assert (replicas.log(LOST).log_end_offset, replicas.log(LOST).high_watermark) == (5, 5)
    assert is_unproven(replicas)

    replicas.step(LOST)

    assert not is_unproven(replicas)
    replicas.close()


def test_an_answer_for_an_epoch_that_is_over_proves_nothing(replicas: Replicas) -> None:
    replicas.step(LOST)
    partition = replicas.cores[LOST].replicas.partitions[Replicas.TOPIC, 0]

    partition.note_caught_up(partition.role.leader_epoch - 1)

    assert is_unproven(replicas)
    replicas.close()
