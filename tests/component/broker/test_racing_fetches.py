"""Several threads that look at one long poll: one answers it, whole, and no segment stays pinned."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions import log_reading, partition
from kavka.broker.partitions.log_reading import SENDFILE_FROM_BYTES, Reading, ReadLimits
from kavka.broker.waiting import delayed_fetch, purgatory
from kavka.broker.waiting.delayed_fetch import DelayedFetch
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.cluster import promise
from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchPartition, FetchResponse
from tests.support.broker_core import BrokerCore
from tests.support.interleaving import Interleaving, TurnLock
from tests.support.partition_logs import batch_of

MODULES = (delayed_fetch, log_reading, purgatory, promise, partition)


@pytest.mark.parametrize("seed", range(100))
def test_a_long_poll_is_answered_once_and_whole(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Interleaving(seed, MODULES, chance=0.01)
    monkeypatch.setattr(delayed_fetch, "threading", SimpleNamespace(Lock=lambda: TurnLock(turns)))
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    hosted = [core.replicas.partitions["visits", index] for index in range(2)]
    half = bytes(batch_of(b"x" * SENDFILE_FROM_BYTES))
    answers: list[FetchResponse] = []
    readings = [
        Reading(each, FetchPartition(partition=each.index, fetch_offset=0, partition_max_bytes=1 << 20))
        for each in hosted
    ]
    limits = ReadLimits(1 << 20, version=12, replica_id=-1, isolation_level=0)

    def answer() -> FetchResponse:
        for reading in readings:
            reading.attach()
        partitions = [reading.answer for reading in readings]
        return FetchResponse(error_code=0, responses=[FetchableTopicResponse(topic="visits", partitions=partitions)])

    operation = DelayedFetch(readings, limits, 2 * len(half), core.connection, answer)
    operation.promise.watch(lambda response, error: answers.append(response or pytest.fail(str(error))))
    parking = Purgatory(Timer(lambda failure: None))

    def append(index: int) -> None:
        hosted[index].append(memoryview(bytearray(half)), 1, 9, 0)
        hosted[index].appended()

    turns.run(
        partial(parking.park, operation, [each.data_arrived for each in hosted], 60_000),
        partial(append, 0),
        partial(append, 1),
        *[each.wake_all for each in hosted],
    )

    parking.expire_all()
    assert len(answers) == 1
    parts: list[Any] = [each.records for each in answers[0].responses[0].partitions]
    assert [part.size_bytes for part in parts if isinstance(part, FilePart)] == [len(half)] * 2
    for part in parts:
        part.release()
    # The log itself pins its active segment.
    assert [core.log("visits", index).published[2][-1].file._pins for index in range(2)] == [1, 1]
    assert (parking.size, [each.data_arrived.operations for each in hosted]) == (0, [{}, {}])
    core.close()
