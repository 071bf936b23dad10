"""Isolation levels by their names in Kafka's settings (`isolation.level`)."""

from typing import Final

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"


def check_isolation(isolation: str) -> None:
    """Raises ValueError for what is none."""
    if isolation not in {READ_UNCOMMITTED, READ_COMMITTED}:
        raise ValueError(f"isolation level {isolation!r} is neither {READ_UNCOMMITTED} nor {READ_COMMITTED}")
