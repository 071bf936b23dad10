"""What the broker's log says of a load."""

import struct

import pytest

from kavka.coordinator.runtime.batches import batch_of
from kavka.protocol.records.batch import Record, build_batch
from tests.support.internal_log import MemoryLog
from tests.support.tiny_shard import NOW_MS, TinyWorld, record_of


def test_a_load_is_logged_with_what_it_came_to(caplog: pytest.LogCaptureFixture) -> None:
    world = TinyWorld()
    log = MemoryLog()
    log.append(batch_of([record_of("a", 1), record_of("b", 2)], NOW_MS), 0)
    log.append(bytearray(build_batch([Record(timestamp_ms=NOW_MS, key=struct.pack(">h", 77), value=b"?")])), 0)

    with caplog.at_level("INFO", "kavka.coordinator.runtime.runtime"):
        world.lead(log)

    assert [each for each in caplog.messages if each.startswith("loaded ") and "records=2 unknown=1" in each]
    world.runtime.stop()
