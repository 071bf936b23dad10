"""A load that nobody wants any longer ends without a complaint, wherever it is by then."""

from itertools import chain, repeat

import pytest

from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.loading import Slices, replay_log
from kavka.coordinator.runtime.record_decoding import RecordDecoder
from kavka.protocol.internal.group_records import GROUP_RECORDS
from tests.support.internal_log import MemoryLog
from tests.support.tiny_shard import NOW_MS, bare_shard, record_of


@pytest.mark.parametrize("asked", range(4))
def test_a_load_may_be_given_up_at_any_look(asked: int) -> None:
    log = MemoryLog()
    log.append(batch_of([record_of("a", 1)], NOW_MS), 0)
    answers = chain(repeat(True, asked), repeat(False))

    loaded = replay_log(log, bare_shard(), RecordDecoder(GROUP_RECORDS), 1 << 20, lambda: next(answers), Slices())

    assert (loaded is None) is (asked < 3)
