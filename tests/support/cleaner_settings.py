"""What shows that a setting of the log cleaner was changed on a running broker: one check a setting."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kavka.protocol.records.batch import iter_batch_headers, iter_records
from tests.support.settings_stage import Stage, eventually
from tests.support.wire import TOPIC

COMPACTED = re.compile(
    r'msg="log compacted" partition=(?P<topic>\S+)-0 from=\d+ to=(?P<to>\d+) .*?bytes_read=(?P<bytes_read>\d+) '
    r".*?keys=(?P<keys>\d+) map_full=(?P<full>[\d.]+)% seconds=(?P<seconds>[\d.]+)"
)
QUICK_MS = "100"
TEN_MINUTES_MS = "600000"
"""Much less than the default backoff of 15 s."""


def fill(stage: Stage, topic: str, keys: int = 20, records: int = 300) -> None:
    """Make most of a compacted topic's log superfluous."""
    for number in range(records):
        stage.client.produce(topic, b"%d" % number + bytes(100), key=b"key-%d" % (number % keys))


def create(stage: Stage, topic: str = "", **configs: str) -> str:
    topic = topic or stage.topic
    stage.client.create_topic(topic, cleanup_policy="compact", segment_bytes="10000", **dict[str, Any](configs))
    return topic


def rounds_of(stage: Stage, topic: str) -> list[re.Match[str]]:
    return [found for found in COMPACTED.finditer(stage.broker.process.log_text()) if found["topic"] == topic]


def wait_for_round(stage: Stage, topic: str = "", count: int = 1) -> list[re.Match[str]]:
    topic = topic or stage.topic
    eventually(lambda: len(rounds_of(stage, topic)) >= count, f"{topic} is not compacted {count} times")
    return rounds_of(stage, topic)


def assert_left_alone(stage: Stage, **configs: str) -> None:
    """The cleaner looks at all logs before each round: two of another topic's, and it has not wanted this one's."""
    other = create(stage, f"{stage.topic}-other", **configs)
    for count in (1, 2):
        fill(stage, other)
        wait_for_round(stage, other, count)
    assert rounds_of(stage, stage.topic) == []


def pauses_only_so_long(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=TEN_MINUTES_MS)
    stage.change(log_cleaner_backoff_ms=QUICK_MS)
    create(stage)
    for count in (1, 2):
        fill(stage, stage.topic)
        wait_for_round(stage, count=count)


def compacts_what_is_dirty_enough(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_min_cleanable_ratio="1")
    create(stage)
    fill(stage, stage.topic)
    assert_left_alone(stage, min_cleanable_dirty_ratio="0.1")
    stage.change(log_cleaner_min_cleanable_ratio="0.1")
    wait_for_round(stage)


def waits_for_records_to_age(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_min_compaction_lag_ms="3600000")
    create(stage)
    fill(stage, stage.topic)
    assert_left_alone(stage, min_compaction_lag_ms="0")
    stage.change(log_cleaner_min_compaction_lag_ms="0")
    wait_for_round(stage)


def does_not_wait_for_longer(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS)
    create(stage, min_cleanable_dirty_ratio="1")
    fill(stage, stage.topic)
    assert_left_alone(stage, min_cleanable_dirty_ratio="0.1")
    stage.change(log_cleaner_max_compaction_lag_ms="500")
    wait_for_round(stage)


def keeps_tombstones_for_so_long(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_delete_retention_ms="0")
    create(stage)
    stage.client.produce(stage.topic, None, key=b"gone")  # type: ignore[arg-type]  # a tombstone
    for count in (1, 2, 3):
        fill(stage, stage.topic)
        wait_for_round(stage, count=count)
    assert b"gone" not in keys_of(stage)
    assert stage.client.describe(TOPIC, stage.topic)["delete.retention.ms"] == "0"


def keys_of(stage: Stage) -> set[bytes | None]:
    data = stage.client.fetch(stage.topic)
    return {
        record.key
        for position, _ in iter_batch_headers(data, allow_truncated_tail=True)
        for record in iter_records(data, position)
    }


def has_room_for_fewer_keys(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_dedupe_buffer_size="1048577")
    create(stage)
    fill(stage, stage.topic, keys=250)
    wait_for_round(stage)
    # Of 5 million slots, as by default, they would be nothing.
    assert max(float(found["full"]) for found in rounds_of(stage, stage.topic)) >= 0.1


def fills_less_of_its_room(stage: Stage) -> None:
    stage.change(
        log_cleaner_backoff_ms=QUICK_MS,
        log_cleaner_dedupe_buffer_size="1048577",
        log_cleaner_io_buffer_load_factor="0.001",
    )
    create(stage)
    fill(stage, stage.topic, keys=250)
    rounds = wait_for_round(stage, count=3)
    assert max(int(found["keys"]) for found in rounds) <= 43


def reads_so_much_at_a_time(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS)
    create(stage)
    fill(stage, stage.topic)
    wait_for_round(stage)
    stage.change(log_cleaner_io_buffer_size="1")
    before, count = reads_of_workers(stage), len(rounds_of(stage, stage.topic))
    # 4 KiB, the least that it reads, of segments of 10,000 bytes. The first round may have begun with what was before.
    for more in (1, 2):
        fill(stage, stage.topic, records=600)
        wait_for_round(stage, count=count + more)
    last = rounds_of(stage, stage.topic)[-1]
    assert reads_of_workers(stage) - before > int(last["bytes_read"]) / 4096


def reads_of_workers(stage: Stage) -> int:
    """How many read calls the worker processes have made."""
    reads = 0
    for pid in workers(stage):
        found = re.search(r"syscr: (\d+)", Path(f"/proc/{pid}/io").read_text())
        assert found is not None
        reads += int(found[1])
    return reads


def workers(stage: Stage) -> list[int]:
    children = Path(f"/proc/{stage.broker.process.pid}/task").glob("*/children")
    return [int(pid) for path in children for pid in path.read_text().split()]


def goes_no_faster(stage: Stage) -> None:
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_io_max_bytes_per_second="30000")
    create(stage)
    fill(stage, stage.topic, records=400)

    def has_been_slow() -> bool:
        # The first rounds, begun while it was filled, may have had next to nothing to do.
        fill(stage, stage.topic, records=100)
        rounds = rounds_of(stage, stage.topic)
        return any(int(found["bytes_read"]) > 40_000 and float(found["seconds"]) > 0.3 for found in rounds)

    eventually(has_been_slow, "it goes as fast as before")
    for found in rounds_of(stage, stage.topic):
        assert float(found["seconds"]) > 0.9 * (int(found["bytes_read"]) / 30_000 - 1)


def works_side_by_side(stage: Stage) -> None:
    # Slow, so that the second thread finds something while the first is at work.
    stage.change(log_cleaner_backoff_ms=QUICK_MS, log_cleaner_threads="2", log_cleaner_io_max_bytes_per_second="20000")
    topics = [create(stage, f"{stage.topic}-{number}") for number in range(2)]

    def are_two() -> bool:
        for topic in topics:
            fill(stage, topic, records=200)
        return len(workers(stage)) == 2

    eventually(are_two, "there is one worker only")


EFFECTS: dict[str, Callable[[Stage], None]] = {
    "log.cleaner.backoff.ms": pauses_only_so_long,
    "log.cleaner.dedupe.buffer.size": has_room_for_fewer_keys,
    "log.cleaner.delete.retention.ms": keeps_tombstones_for_so_long,
    "log.cleaner.io.buffer.load.factor": fills_less_of_its_room,
    "log.cleaner.io.buffer.size": reads_so_much_at_a_time,
    "log.cleaner.io.max.bytes.per.second": goes_no_faster,
    "log.cleaner.max.compaction.lag.ms": does_not_wait_for_longer,
    "log.cleaner.min.cleanable.ratio": compacts_what_is_dirty_enough,
    "log.cleaner.min.compaction.lag.ms": waits_for_records_to_age,
    "log.cleaner.threads": works_side_by_side,
}
