"""With whose rights a group's regular expressions are looked at: each matches only what all its members may describe.

No record says who a member is: after a load its next heartbeat does. Until then what was written down counts, which was
found with the rights of that time. Rights that change count when the topics are looked at the next time.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.member import Member
    from kavka.coordinator.group.group import Viewer

ViewersOf: TypeAlias = "Mapping[str, Mapping[Hashable, Viewer]]"
"""By regular expression and identity."""


class Viewers:
    """The members of one group whose rights are known, and limited. Guarded by the shard's lock."""

    __slots__ = ("_by_member", "_counted", "are_fewer")

    def __init__(self) -> None:
        self._by_member: dict[str, Viewer] = {}
        self._counted: set[tuple[str, Hashable]] = set()
        """The expressions that stand for nothing that these may not describe."""
        self.are_fewer = False
        """Whether one has gone since the topics were looked at: an expression may stand for more now."""

    def met(self, member: "Member", viewer: "Viewer | None") -> None:
        """That member is heard of, by a request that is decided: `hides` was asked for it."""
        if viewer is not None:
            self._by_member[member.member_id] = viewer
            if member.regex:
                self._counted.add((member.regex, viewer.identity))

    def forget(self, member_id: str) -> None:
        """The member is gone."""
        if self._by_member.pop(member_id, None) is not None:
            self.are_fewer = True

    def hides(self, member: "Member", viewer: "Viewer | None", topics: Collection[str]) -> set[str]:
        """What of an expression's topics a member that is heard of may not describe."""
        if viewer is None or (member.regex, viewer.identity) in self._counted:
            return set()
        return {name for name in topics if not viewer.may_describe(name)}

    def of(self, members: "Mapping[str, Member]") -> dict[str, dict[Hashable, "Viewer"]]:
        """Who is subscribed to which expression; of several members that are one principal, one."""
        found: dict[str, dict[Hashable, Viewer]] = {}
        for member_id, viewer in self._by_member.items():
            member = members.get(member_id)
            if member is not None and member.regex:
                found.setdefault(member.regex, {})[viewer.identity] = viewer
        return found

    def looked(self, viewers: ViewersOf) -> None:
        """The topics were looked at with these eyes."""
        self._counted = {(regex, identity) for regex, each in viewers.items() for identity in each}


def visible(topics: Iterable[str], viewers: Iterable["Viewer"]) -> set[str]:
    """The topics that all of them may describe."""
    return {name for name in topics if all([viewer.may_describe(name) for viewer in viewers])}
