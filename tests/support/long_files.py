"""Which test files take longest: they begin first, so that all workers end together.

A file's tests stay in one worker, and one that is long and begins last keeps everybody waiting. The seconds are rough
and only their order counts; `make test PYTEST_ARGS=--durations=100` tells them anew. A file of integration/ that is not
here comes before those of component/, and these before those of unit/.
"""

from pathlib import PurePath
from typing import Final

SECONDS: Final = {
    "tests/integration/transactions/test_exactly_once.py": 60,
    "tests/integration/transactions/test_kill_at_every_step.py": 60,
}
BY_FOLDER: Final = {"integration": 5, "component": 1}


def expected_seconds(path: PurePath) -> int:
    """About how long a file takes, by its path below the repository."""
    return SECONDS.get(path.as_posix(), max((BY_FOLDER.get(part, 0) for part in path.parts), default=0))
