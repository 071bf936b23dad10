"""Whether the replicas of each partition are the same bytes, once nobody writes."""

from pathlib import Path
from typing import Final

from tests.chaos.stage import Stage
from tests.support.processes import wait_until

EQUAL_S: Final = 120.0


def differences(stage: Stage) -> list[str]:
    """Of all partitions of all topics, as their files are; waits until followers have what their leaders have."""

    def found() -> list[str]:
        return [
            f"{topic}-{index} differs: {_sizes(folders)}"
            for (topic, index), state in sorted(stage.partitions().items())
            if not _are_equal(folders := [stage.brokers[each].log_dir / f"{topic}-{index}" for each in state.replicas])
        ]

    try:
        wait_until(lambda: not found(), EQUAL_S, "")
    except TimeoutError:
        return found()
    return []


def content(folder: Path) -> bytes:
    """A log's batches, however they are divided among segments."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def _are_equal(folders: list[Path]) -> bool:
    first, *others = map(content, folders)
    return all(other == first for other in others)


def _sizes(folders: list[Path]) -> str:
    return ", ".join(f"{folder.parent.parent.name}: {len(content(folder))} bytes" for folder in folders)
