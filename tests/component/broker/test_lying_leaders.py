"""Leaders that answer their followers with nonsense: what a follower has stays, and is copied whole when that ends."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kavka.protocol.records.batch import iter_batch_headers
from kavka.protocol.records.header import HEADER_SIZE_BYTES
from tests.support.replicas import Replicas

PARTITIONS = 2
Lie = Callable[[PartitionData, random.Random], None]


def _batches(part: PartitionData) -> list[bytes]:
    records = bytes(part.records or b"")
    return [records[place : place + header.size_bytes] for place, header in iter_batch_headers(records)]


def _truncated(part: PartitionData, dice: random.Random) -> None:
    records = bytes(part.records or b"")
    part.records = records[: dice.randrange(len(records) + 1)]


def _random(part: PartitionData, dice: random.Random) -> None:
    part.records = dice.randbytes(dice.randrange(1, 4000))


def _repeated(part: PartitionData, dice: random.Random) -> None:
    """More than was asked for: after what is due it comes again, and again."""
    part.records = bytes(part.records or b"") * dice.randrange(2, 200)


def _out_of_order(part: PartitionData, _dice: random.Random) -> None:
    part.records = b"".join(reversed(_batches(part)))


def _from_before(part: PartitionData, dice: random.Random) -> None:
    """Its batches have offsets that the follower has already."""
    part.records = b"".join(bytes(dice.randrange(2)) + batch for batch in _batches(part))
    part.records = bytes(8) + part.records[8:]


def _flipped(part: PartitionData, dice: random.Random) -> None:
    """A bit in what the CRC covers."""
    records = bytearray(part.records or b"")
    if len(records) > HEADER_SIZE_BYTES:
        records[dice.randrange(21, HEADER_SIZE_BYTES)] ^= 1 << dice.randrange(8)
    part.records = bytes(records)


def _claimed_size(part: PartitionData, dice: random.Random) -> None:
    """A batch that says to be longer, or shorter, than it is."""
    records = bytearray(part.records or b"")
    records[8:12] = dice.choice([-1, 0, 1, 49, 1 << 20, (1 << 31) - 1]).to_bytes(4, "big", signed=True)
    part.records = bytes(records)


def _later_epoch(part: PartitionData, _dice: random.Random) -> None:
    records = bytearray(part.records or b"")
    if len(records) > HEADER_SIZE_BYTES:
        records[12:16] = (1 << 20).to_bytes(4, "big")
    part.records = bytes(records)


def _error(part: PartitionData, dice: random.Random) -> None:
    """With records, too."""
    part.error_code = dice.choice([-1, 2, 3, 5, 6, 56, 74, 75, 76, 100, 103, 12345, -32768])


def _no_partition(part: PartitionData, dice: random.Random) -> None:
    part.partition_index = dice.choice([-1, 77, (1 << 31) - 1])


def _offsets(part: PartitionData, dice: random.Random) -> None:
    """Of what it has committed: nothing that a follower copies hangs on that."""
    part.high_watermark = dice.choice([-(1 << 63), -1, 0, (1 << 63) - 1])
    part.last_stable_offset = dice.choice([-(1 << 63), -1, 0, (1 << 63) - 1])


LIES = [
    _truncated,
    _random,
    _repeated,
    _out_of_order,
    _from_before,
    _flipped,
    _claimed_size,
    _later_epoch,
    _error,
    _no_partition,
    _offsets,
]


def _lies(lie: Lie, dice: random.Random) -> Callable[[FetchResponse], None]:
    def tamper(answer: FetchResponse) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                if part.records and dice.random() < 0.8:
                    lie(part, dice)
            if dice.random() < 0.2:
                # The same once more, and what nobody asked for.
                topic.partitions.extend(list(topic.partitions))
        if dice.random() < 0.2:
            stranger = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=b"x" * 100)
            answer.responses.append(
                FetchableTopicResponse(topic="others", topic_id=dice.randbytes(16), partitions=[stranger])
            )

    return tamper


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("seed", range(3))
def test_lies_change_nothing_that_was_copied_and_are_over_when_they_end(tmp_path: Path, lie: Lie, seed: int) -> None:
    dice = random.Random(seed)
    replicas = Replicas(tmp_path, partitions=PARTITIONS)
    for index in range(PARTITIONS):
        replicas.elect(1, index)
        replicas.produce(1, b"first", index=index)
    replicas.catch_up([2], rounds=3)
    (fetcher,) = replicas.managers[2].fetchers
    fetcher.is_stopping = True  # waits for nothing
    way = replicas.leaders[2, 1]
    way.tamper = _lies(lie, dice)

    for number in range(40):
        replicas.now_ms += dice.choice([0, 1000])
        replicas.produce(1, b"%d" % number, index=number % PARTITIONS)
        before = [replicas.contents(2, index) for index in range(PARTITIONS)]
        replicas.step(2)
        for index in range(PARTITIONS):
            copied = replicas.contents(2, index)
            assert copied.startswith(before[index])
            assert replicas.contents(1, index).startswith(copied)
            log = replicas.log(2, index)
            assert log.log_start_offset <= log.high_watermark <= log.log_end_offset

    way.tamper = lambda answer: None
    for index in range(PARTITIONS):
        # Whom it could not follow it follows again when it is told to.
        replicas.elect(1, index)
        replicas.produce(1, b"true", index=index)
    replicas.catch_up([2])
    for index in range(PARTITIONS):
        assert replicas.contents(2, index) == replicas.contents(1, index)
    assert replicas.managers[2].failed == frozenset()
    replicas.close()
