"""An audit from beginning to end."""

from collections.abc import Callable, Collection
from pathlib import Path

from kavka.pipeline.jobs.audit.comparing import LakeRows, compare
from kavka.pipeline.jobs.audit.logs import AuditError, LogSide
from kavka.pipeline.jobs.audit.report import AuditReport, Buckets, PartitionAudit
from kavka.pipeline.lake.lake import Lake

HOUR_MS = 3_600_000


def audit(
    lake_path: str | Path,
    side: LogSide,
    topics: Collection[str] | None = None,
    *,
    bucket_ms: int = HOUR_MS,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Compare a lake, as it is at its newest version, with the topics in it, or with some of these.

    What the log has below what was archived first, or beyond what was archived last, is no loss: the latter is the lag.
    Below the log's start nothing is left to compare with: rows there are counted, looked at for duplicates, and their
    archived ranges have to be without gaps. A compacted topic has to be in the lake as far as the log still has it,
    which is the last record of each key at least. A job that leaves rows out on purpose has these missing.

    A topic or partition that is not there any more is a fault, as nothing was verified; so is a partition of the log
    that the lake has nothing of, and a record whose time is not the lake's.

    `bucket_ms`: the length of the time buckets in which rows are counted. `progress` hears which partition is next.
    Raises AuditError (also for a topic that the lake does not have), LakeError, KafkaError, OSError.
    """
    lake = Lake(lake_path)
    archived = lake.archived()
    wanted = sorted(archived if topics is None else set(topics))
    if unknown := [topic for topic in wanted if topic not in archived]:
        raise AuditError(f"the lake has no topic {', '.join(unknown)}; it has {', '.join(sorted(archived)) or 'none'}")
    found = []
    for topic in wanted:
        is_compacted: bool | None = None
        for partition in sorted({*archived[topic], *side.partitions(topic)}):
            if progress is not None:
                progress(f"{topic}-{partition}")
            rows = LakeRows(lake, topic, partition)
            bounds = side.bounds(topic, partition)
            if bounds is not None and is_compacted is None:
                is_compacted = side.is_compacted(topic)
            each = PartitionAudit(
                topic=topic,
                partition=partition,
                is_compacted=bool(is_compacted),
                log=bounds,
                archived=list(archived[topic].get(partition, ())),
                manifest_rows=rows.count,
                buckets=Buckets(bucket_ms),
            )
            compare(side, rows, each)
            found.append(each)
    return AuditReport(str(lake.path), lake.version, found)
