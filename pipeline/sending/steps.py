"""The steps of a writer, by name: where tests have it die, and what a report can say of it."""

from collections.abc import Callable
from typing import Final, TypeAlias

OnStep: TypeAlias = Callable[[str], None]
"""Called with a step's name when the step is done, on the thread that did it."""

PLANNED: Final = "planned"
"""The driver has noted among how many partitions the batch is shared out."""
FENCED: Final = "fenced"
"""Earlier producers of this marker are shut out."""
BEGUN: Final = "begun"
"""A transaction is open."""
SENT: Final = "sent"
"""The transaction's rows are with the brokers."""
MARKED: Final = "marked"
"""And so is its marker."""
COMMITTED: Final = "committed"
"""The transaction counts."""
WRITTEN: Final = "written"
"""All partitions of the batch are there."""

STEPS: Final = (PLANNED, FENCED, BEGUN, SENT, MARKED, COMMITTED, WRITTEN)


def unwatched(step: str) -> None:
    """Nobody wants to know."""
