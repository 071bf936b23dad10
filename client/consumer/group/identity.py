"""Who this consumer is to its group's coordinator."""

from typing import Final, NamedTuple


class Identity(NamedTuple):
    """A member as requests name it. Immutable: it is swapped whole, so any thread may read it."""

    generation: int = -1
    """The member epoch, in groups of the new protocol."""
    member_id: str = ""
    instance_id: str | None = None


NOBODY: Final = Identity()
"""Who commits for partitions that were assigned by hand: accepted while the group has no members."""
