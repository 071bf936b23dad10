"""What shows that a setting of moves between log directories was changed on a running broker: one check a setting."""

import time
from collections.abc import Callable
from pathlib import Path

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.support.settings_stage import Stage, eventually

RATE = 20_000
RECORDS, VALUE_BYTES = 60, 1000


def move(stage: Stage, target: Path) -> None:
    topics = [AlterReplicaLogDirTopic(name=stage.topic, partitions=[0])]
    answer = stage.client.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=topics)]), 2)
    assert [part.error_code for topic in answer.results for part in topic.partitions] == [ErrorCode.NONE]


def places(stage: Stage) -> dict[Path, bool]:
    """The directories that the topic lies in, and whether it is on its way there."""
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=stage.topic, partitions=[0])])
    return {
        Path(each.log_dir): part.is_future_key
        for each in stage.client.ask(asked, 4).results
        for topic in each.topics
        for part in topic.partitions
    }


def move_no_faster(stage: Stage) -> None:
    stage.create()
    for _ in range(RECORDS):
        stage.produce(bytes(VALUE_BYTES))
    source = stage.folder.parent
    (target,) = (each for each in stage.directories if each != source)
    stage.change(replica_alter_log_dirs_io_max_bytes_per_second=str(RATE))
    started_s = time.monotonic()
    move(stage, target)
    eventually(lambda: places(stage) == {target: False}, "it does not move")
    assert time.monotonic() - started_s > 0.9 * (RECORDS * VALUE_BYTES / RATE - 1)

    # Under way the whole day, were it not for the change.
    stage.change(replica_alter_log_dirs_io_max_bytes_per_second="1")
    move(stage, source)
    assert places(stage) == {target: False, source: True}
    stage.change(replica_alter_log_dirs_io_max_bytes_per_second="1000000000")
    eventually(lambda: places(stage) == {source: False}, "it does not move on")


EFFECTS: dict[str, Callable[[Stage], None]] = {"replica.alter.log.dirs.io.max.bytes.per.second": move_no_faster}
