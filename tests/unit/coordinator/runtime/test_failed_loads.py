"""Loads that fail, and whoever they leave without a coordinator meanwhile."""

import logging
from collections.abc import Iterator

import pytest

from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.internal_log import MemoryLog
from tests.support.processes import wait_until
from tests.support.tiny_shard import NOW_MS, TinyWorld, record_of


@pytest.fixture
def world() -> Iterator[TinyWorld]:
    world = TinyWorld()
    yield world
    world.loading.set()
    world.runtime.stop()
    assert world.died == []


def log_of(record: CoordinatorRecord) -> MemoryLog:
    log = MemoryLog()
    log.append(batch_of([record], NOW_MS, codec=0), 0)
    return log


def test_a_load_that_fails_is_tried_again_and_refused_meanwhile(world: TinyWorld) -> None:
    log = log_of(record_of("g", 5))
    log.read_failures.append(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))

    world.runtime.leads(0, 0, log)
    world.wait_for(ShardState.FAILED)
    assert world.get("g").errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.wait_for(ShardState.ACTIVE)

    assert world.get("g").replies == [5]


def test_a_partition_that_goes_while_it_is_loaded_is_no_error(
    world: TinyWorld, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of(record_of("g", 5))
    log.read_failures.append(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    with caplog.at_level(logging.INFO):
        world.runtime.leads(0, 0, log)
        wait_until(lambda: log.read_failures == [] and caplog.records, 60, "nothing was read")
        world.runtime.resigns(0)

    # It may have been tried again, and loaded, before it was gone.
    assert {(record.levelno, record.exc_info) for record in caplog.records} == {(logging.INFO, None)}


def test_a_log_that_has_failed_when_all_is_replayed_is_loaded_anew_before_it_serves(world: TinyWorld) -> None:
    class FailingLog(MemoryLog):
        looks = 0

        @property
        def end_offset(self) -> int:
            self.looks += 1
            if self.looks == 2:
                # The next load waits until the test has looked.
                world.loading.clear()
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
            return 0

        @end_offset.setter
        def end_offset(self, offset: int) -> None:
            assert offset == 0

    world.runtime.leads(0, 0, FailingLog())
    wait_until(lambda: not world.loading.is_set(), 60, "the log has not failed")
    world.wait_for(ShardState.FAILED)
    assert world.runtime.shards() == []

    world.loading.set()
    world.wait_for(ShardState.ACTIVE)
    assert [shard.is_loaded for shard in world.runtime.shards()] == [True]


def test_a_failed_load_of_a_partition_that_is_gone_is_not_tried_again(world: TinyWorld) -> None:
    log = log_of(record_of("poison", 5))
    world.runtime.leads(0, 0, log)
    world.wait_for(ShardState.FAILED)

    world.runtime.resigns(0)
    world.lead(log_of(record_of("g", 1)))

    assert world.get("g").replies == [1]
    assert log.reads == 1
