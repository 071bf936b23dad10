"""What lies on the disks, once nobody writes: whether the replicas of each partition are the same bytes, each in one
directory of its broker, and all that moved has arrived.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kavka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka.storage import partition_metadata
from kavka.storage.files import Files
from kavka.storage.partition_metadata import NO_TOPIC_ID
from tests.chaos.stage import Stage
from tests.support.processes import wait_until

EQUAL_S: Final = 300.0
THROTTLE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
UNTHROTTLED: Final = str(1 << 30)
BROKER: Final = 4
"""A broker as a resource with settings; without a name, all of them."""


def differences(stage: Stage) -> list[str]:
    """Of all partitions of all topics, as their files are; waits until followers have what their leaders have."""
    return _left_after(lambda: _differing(stage))


def _lift_throttle(stage: Stage) -> None:
    """Logs have grown by as much as half an hour brings, and the throttle of moves was meant for their beginning.

    Asked again while nobody controls, or answers: on a busy machine a session may end by itself, the faults being over.
    """
    change = AlterableConfig(name=THROTTLE, config_operation=0, value=UNTHROTTLED)
    everywhere = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[everywhere], validate_only=False)

    def is_lifted() -> bool:
        try:
            (answer,) = stage.ask(stage.controller(), request, 0).responses
        except (OSError, KeyError):
            return False
        return int(answer.error_code) == 0

    wait_until(is_lifted, EQUAL_S, "the throttle of moves is not lifted")


def unmoved(stage: Stage) -> list[str]:
    """Moves between log directories that do not come to an end, though nothing holds them up any more.

    Only of topics that there are: what one that was deleted has on a disk that was away is left alone.
    """
    _lift_throttle(stage)
    return _left_after(lambda: _copies(stage))


def content(folder: Path) -> bytes:
    """A log's batches, however they are divided among segments."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def _left_after(found: Callable[[], list[str]]) -> list[str]:
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not found(), EQUAL_S, "")
    return found()


def _copies(stage: Stage) -> list[str]:
    told = stage.told()
    if told is None:
        return ["nobody tells which topics there are"]
    living = {NO_TOPIC_ID, *(topic.topic_id for topic in told.topics)}
    copies = [each for broker in stage.brokers.values() for each in broker.copies]
    return [f"stays a copy: {each}" for each in copies if _topic_id(each) in living]


def _topic_id(folder: Path) -> bytes:
    try:
        return partition_metadata.read_topic_id(folder, Files())
    except OSError:
        # It goes just now.
        return NO_TOPIC_ID


def _differing(stage: Stage) -> list[str]:
    found = []
    partitions = stage.partitions()
    if not partitions:
        # Else nothing would be compared, and nothing found.
        return ["nobody tells which replicas there are"]
    for place, state in sorted(partitions.items()):
        folders = [folder for each in state.replicas for folder in stage.brokers[each].folders_of(place)]
        if len(folders) != len(state.replicas):
            found.append(f"{place} of {state.replicas} lies in {folders}")
        elif not _are_equal(folders):
            found.append(f"{place} differs: {_sizes(folders)}")
    return found


def _are_equal(folders: list[Path]) -> bool:
    first, *others = map(content, folders)
    return all(other == first for other in others)


def _sizes(folders: list[Path]) -> str:
    return ", ".join(f"{folder.parent.parent.name}: {len(content(folder))} bytes" for folder in folders)
