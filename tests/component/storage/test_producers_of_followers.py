"""Followers know of producers exactly what their leader knows, in whatever pieces they copy, crash or are truncated."""

import random
from pathlib import Path
from typing import Any

import pytest

from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import START_MS, append, open_log

PRODUCERS = 4
STEPS = 80
SEGMENT_BYTES = 900
PIECES = (150, 400, 5000)


def known(log: PartitionLog) -> dict[int, tuple[Any, ...]]:
    return {
        each.producer_id: (each.epoch, tuple(each.batches), each.last_timestamp_ms, each.txn_first_offset)
        for each in log.producers.entries()
    }


def copy(leader: PartitionLog, follower: PartitionLog, dice: random.Random) -> None:
    while follower.log_end_offset < leader.log_end_offset:
        piece = leader.read(
            follower.log_end_offset, dice.choice(PIECES), min_one=True, end_offset=leader.log_end_offset
        )
        follower.append_as_follower(bytearray(piece.read_bytes()))


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("seed", range(8))
def test_a_follower_knows_what_its_leader_knows(tmp_path: Path, seed: int, kind: str) -> None:
    dice = random.Random(seed)
    settings: dict[str, Any] = {
        "segment_bytes": SEGMENT_BYTES,
        "segment_jitter_ms": 0,
        "message_timestamp_type": kind,
    }
    leader, folder = open_log(tmp_path / "leader" / "visits-0", **settings), tmp_path / "follower" / "visits-0"
    follower = open_log(folder, **settings)
    epochs, sequences = [0] * PRODUCERS, [0] * PRODUCERS
    for _ in range(STEPS):
        producer = dice.randrange(PRODUCERS)
        if dice.random() < 0.05:
            epochs[producer] += 1
            sequences[producer] = 0
        count = dice.randint(1, 3)
        append(
            leader,
            *[b"value"] * count,
            timestamp_ms=START_MS + dice.randrange(1000),
            producer_id=producer,
            producer_epoch=epochs[producer],
            base_sequence=sequences[producer],
        )
        sequences[producer] += count
        chance = dice.random()
        if chance < 0.3:
            copy(leader, follower, dice)
        if chance < 0.1:
            follower.close(clean=False)
            follower = open_log(folder, clean=False, recovery_point=follower.published[3][-1], **settings)
        elif chance < 0.2:
            follower.truncate_to(dice.randint(max(0, follower.log_end_offset - 12), follower.log_end_offset))
            copy(leader, follower, dice)
        if chance < 0.3:
            assert known(follower) == known(leader)
    leader.close()
    follower.close()
