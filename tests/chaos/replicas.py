"""What lies on the disks, once nobody writes: whether the replicas of each partition are the same bytes, each in one
directory of its broker, and all that moved has arrived.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.chaos.stage import Stage
from tests.support.processes import wait_until

EQUAL_S: Final = 120.0


def differences(stage: Stage) -> list[str]:
    """Of all partitions of all topics, as their files are; waits until followers have what their leaders have."""
    return _left_after(lambda: _differing(stage))


def unmoved(stage: Stage) -> list[str]:
    """Moves between log directories that do not come to an end."""
    return _left_after(lambda: [f"stays a copy: {each}" for broker in stage.brokers.values() for each in broker.copies])


def content(folder: Path) -> bytes:
    """A log's batches, however they are divided among segments."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def _left_after(found: Callable[[], list[str]]) -> list[str]:
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not found(), EQUAL_S, "")
    return found()


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
