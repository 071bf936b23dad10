"""The groups of one shard."""

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.coordinator.group.group import Group


class GroupTable:
    """Groups by id, whichever protocol they speak. Owned by its shard, guarded by the shard's lock."""

    __slots__ = ("_groups", "get")

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.get = self._groups.get
        """The group of that id, or None."""

    def put(self, group: "Group") -> None:
        """Enter a group, in the place of the one that has its id."""
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        """Forget a group; nothing happens if there is none."""
        self._groups.pop(group_id, None)

    def all(self) -> "Collection[Group]":
        """All groups as they are now: a list of its own, so that groups may come and go meanwhile."""
        return list(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)
