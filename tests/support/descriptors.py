"""What this process has open, among what other threads open and close meanwhile."""

import contextlib
from pathlib import Path


def descriptors() -> set[tuple[str, str]]:
    """Number and target of each. A test asks what came and stays, for others' leavings may go at any time."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        # The listing's own is gone by now.
        with contextlib.suppress(OSError):
            found.add((path.name, str(path.readlink())))
    return found
