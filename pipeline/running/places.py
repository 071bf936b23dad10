"""Where a job keeps what: below its checkpoint, one folder a query for Spark, and `_kavka` for our own notes."""

from pathlib import Path
from typing import Final

_OWN: Final = "_kavka"
OWN_NAMES: Final = frozenset({_OWN, "lock"})
"""No sink can have them: its folder would be where our own notes are, or its notes where the lock is."""


class Places:
    """Paths below a job's checkpoint. Nothing is made here."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint: Final = checkpoint
        self.notes: Final = checkpoint / _OWN

    def query(self, name: str) -> Path:
        """A sink's query's checkpoint, as Spark writes it."""
        return self.checkpoint / name

    def sink(self, name: str, query_id: str) -> Path:
        """A sink's own notes of a query: one that begins anew has another id, and what is noted there is not its."""
        return self.notes / name / query_id

    @property
    def declared(self) -> Path:
        """What the job file said when the job ran last."""
        return self.notes / "job.json"

    @property
    def decided_ids(self) -> Path:
        """What all queries go by about schema ids that the registry did not have."""
        return self.notes / "schema-ids.json"

    @property
    def status(self) -> Path:
        """What `kavka pipeline status` shows."""
        return self.notes / "status.json"

    @property
    def log(self) -> Path:
        """What Spark says, stack traces too; what is older in `spark.log.1`."""
        return self.notes / "spark.log"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the job."""
        return self.notes / "lock"
