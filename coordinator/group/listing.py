"""ListGroups, DescribeGroups, DeleteGroups: what administrators see of groups, and how they remove them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.offsets.records import Tombstones
from kavka.coordinator.runtime.result import Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_groups import DeletableGroupResult
from kavka.protocol.messages.describe_groups import DescribedGroup
from kavka.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.groups import ClassicGroups
    from kavka.coordinator.group.offsets.deletion import OffsetDeletions
    from kavka.coordinator.group.table import GroupTable

FIRST_VERSION_WITH_NOT_FOUND: Final = 6
DEAD: Final = "Dead"


class GroupListing:
    """Answers about the groups of one shard. Called under the shard's lock."""

    __slots__ = ("_classic", "_deletions", "_table")

    def __init__(self, table: "GroupTable", classic: "ClassicGroups", deletions: "OffsetDeletions") -> None:
        self._table = table
        self._classic = classic
        self._deletions = deletions

    def list_groups(self, states: Collection[str], types: Collection[str], reply: Reply) -> Result:
        """The shard's groups in one of those states and of one of those types, as `list[ListedGroup]`.

        No states, or no types, are all of them; upper and lower case are alike. Unknown ones match nothing.
        """
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state_name,
                group_type=group.type.value,
            )
            for group in self._table.all()
            if (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.type.value in wanted_types)
        ]
        return Result((), ((reply, listed),), reads_committed=True)

    def describe_groups(
        self, group_ids: Sequence[str], api_version: int, reply: Reply, *, include_history: bool = False
    ) -> Result:
        """What members classic groups have, as `list[DescribedGroup]`.

        Others are Dead: from v6 on with GROUP_ID_NOT_FOUND and a message that says what is the matter (KIP-1043).
        """
        described = []
        for group_id in group_ids:
            group = self._table.get(group_id)
            if isinstance(group, ClassicGroup):
                answer = self._classic.describe(group)
                if include_history:
                    answer.history = group.history.described()
                described.append(answer)
            else:
                missing = "not found" if group is None else "is not a classic group"
                described.append(_dead(group_id, api_version, f"Group {group_id} {missing}."))
        return Result((), ((reply, described),), reads_committed=True)

    def delete_groups(self, group_ids: Sequence[str], reply: Reply) -> Result:
        """Delete groups that have no members, and all their offsets; a `list[DeletableGroupResult]`."""
        records = []
        results = []
        for group_id in dict.fromkeys(group_ids):
            code = ErrorCode.NONE
            try:
                group = self._table.get(group_id)
                if group is None:
                    raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
                group.validate_delete()
                records += self._deletions.all_of(group_id)
                records += group.tombstones()
            except BrokerError as error:
                code = error.code
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        return Tombstones(records, ((reply, results),), stands=self._deletions.count_deleted).result()


def _dead(group_id: str, api_version: int, message: str) -> DescribedGroup:
    known = api_version < FIRST_VERSION_WITH_NOT_FOUND
    return DescribedGroup(
        error_code=ErrorCode.NONE if known else ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=None if known else message,
        group_id=group_id,
        group_state=DEAD,
        protocol_type="",
        protocol_data="",
        members=[],
    )
