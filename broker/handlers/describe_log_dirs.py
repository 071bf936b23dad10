"""DescribeLogDirs v0-5.

Behaviour
- Each of this broker's log directories with the partitions in it, their sizes, and how far a log's end lies behind its
  high watermark; of the partitions asked for, or of all. A directory that failed is KAFKA_STORAGE_ERROR, without
  partitions.
- A replica that moves to another directory is there twice: its copy is a future replica, whose lag is the distance from
  the copy's end to the log's.
- Not done: nothing.

Versions
- v3: an error code for the whole answer. v4: total and usable bytes of the volume (KIP-827). v5: cordoned directories,
  of which there are none.
"""

import os
from functools import partial
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.slices import LazyList, in_slices
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kavka.storage.partition_folders import is_future_folder

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.storage.log_directory import LogDirectory
    from kavka.storage.partition_log import PartitionLog


@handles(DescribeLogDirsRequest, versions="0-5")
def describe_log_dirs(
    request: DescribeLogDirsRequest, context: Context, services: "Services"
) -> DescribeLogDirsResponse:
    if not context.allows(Operation.DESCRIBE, CLUSTER):
        return DescribeLogDirsResponse(
            throttle_time_ms=0, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]
        )
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(each.topic, index) for each in request.topics for index in each.partitions}
    results = [_describe(directory, wanted, services) for directory in services.logs.directories]
    return DescribeLogDirsResponse(throttle_time_ms=0, results=results)


def _describe(
    directory: "LogDirectory", wanted: set[tuple[str, int]] | None, services: "Services"
) -> DescribeLogDirsResult:
    path = str(directory.path.absolute())
    if not directory.online:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=[])
    by_topic: dict[str, list[PartitionLog]] = {}
    for log in in_slices(services.logs.logs_in(directory)):
        if wanted is None or (log.topic, log.partition) in wanted:
            by_topic.setdefault(log.topic, []).append(log)
    total_bytes, usable_bytes = _volume_bytes(path)
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=path,
        topics=LazyList(list(by_topic.values()), partial(_topic, services)),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _topic(services: "Services", logs: "list[PartitionLog]") -> DescribeLogDirsTopic:
    partitions = [
        DescribeLogDirsPartition(
            partition_index=log.partition,
            partition_size=log.size_bytes,
            offset_lag=_lag(services, log),
            is_future_key=is_future_folder(log.folder),
        )
        for log in logs
    ]
    return DescribeLogDirsTopic(name=logs[0].topic, partitions=partitions)


def _lag(services: "Services", log: "PartitionLog") -> int:
    """Kafka's INVALID_OFFSET_LAG of a copy whose log is offline."""
    if not is_future_folder(log.folder):
        return max(log.high_watermark - log.log_end_offset, 0)
    current = services.logs.get(log.topic, log.partition)
    return -1 if current is None else max(current.log_end_offset - log.log_end_offset, 0)


def _volume_bytes(path: str) -> tuple[int, int]:
    """Size and free space of the volume, -1 for both if it does not say."""
    try:
        volume = os.statvfs(path)
    except OSError:
        return -1, -1
    return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize
