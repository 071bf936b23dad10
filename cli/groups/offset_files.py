"""Plans of new offsets as CSV, in the two shapes of Kafka's tool: with the group's id in front, and without."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kavka.cli.failing import Failure
from kavka.client.topic_partition import TopicPartition

_MOST_BYTES: Final = 64 * 1024 * 1024


def read_plan(path: Path, group_ids: Iterable[str]) -> dict[str, dict[TopicPartition, int]]:
    """New offsets by group; lines without a group are for the one that was named. Raises Failure.

    With several groups each line names its own, and lines of others are left out, as in Kafka's tool.
    """
    named = list(group_ids)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Failure(f"--from-file {path}: it is larger than {_MOST_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"--from-file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"--from-file {path}: it is not text in UTF-8") from error
    plan: dict[str, dict[TopicPartition, int]] = {group_id: {} for group_id in named}
    for number, fields in enumerate(csv.reader(io.StringIO(text)), 1):
        if not fields:
            continue
        group_id, partition, offset = _line(path, number, fields, named)
        if group_id in plan:
            plan[group_id][partition] = offset
    if not any(plan.values()):
        raise Failure(f"--from-file {path}: it has no offset of {', '.join(named)}")
    return plan


def _line(path: Path, number: int, fields: list[str], named: list[str]) -> tuple[str, TopicPartition, int]:
    *group, topic, partition, offset = ["", "", "", *fields] if len(fields) < 3 else fields
    if len(group) > 1 or not partition.strip().isdecimal() or not offset.strip().isdecimal():
        raise Failure(
            f"--from-file {path}, line {number}: {','.join(fields)!r} is no offset",
            "write TOPIC,PARTITION,OFFSET, or GROUP,TOPIC,PARTITION,OFFSET",
        )
    if not group and len(named) != 1:
        raise Failure(f"--from-file {path}, line {number}: it names no group", "write GROUP,TOPIC,PARTITION,OFFSET")
    return group[0] if group else named[0], TopicPartition(topic, int(partition)), int(offset)


def plan_lines(plan: Mapping[str, Mapping[TopicPartition, int]]) -> list[str]:
    """The plan as such lines: without the group's id where there is but one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, offsets in plan.items():
        for (topic, partition), offset in offsets.items():
            writer.writerow([topic, partition, offset] if len(plan) == 1 else [group_id, topic, partition, offset])
    return text.getvalue().splitlines()
