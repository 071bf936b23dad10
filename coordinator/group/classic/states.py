"""The states of a classic group, what each request does there, and which states may follow one another.

EMPTY <-> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> STABLE
                  ^----------------------'                 |
                  '----------------------------------------'
any state -> DEAD
"""

from enum import Enum
from typing import Final


class ClassicState(Enum):
    """Where a classic group stands; the values are shown by DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    """No members; committed offsets may remain.

    JoinGroup without a member id: added (or told its id first) -> PREPARING_REBALANCE
    JoinGroup with an id that is pending: the same; any other id: UNKNOWN_MEMBER_ID
    SyncGroup, Heartbeat, LeaveGroup: UNKNOWN_MEMBER_ID
    OffsetCommit: of a standalone consumer (generation -1) only · OffsetDelete, DeleteGroups: yes
    the last offset expires, or the group is deleted -> DEAD
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to (re)join: until all did, or the rebalance timeout is over.

    JoinGroup waits · SyncGroup, Heartbeat: REBALANCE_IN_PROGRESS (a heartbeat still counts as one)
    LeaveGroup removes, and may let the join phase end · OffsetCommit of the old generation: yes
    all joined, or time is up: dynamic members who are late are removed -> COMPLETING_REBALANCE
    time is up and only static members are there, all of them late: wait once more
    nobody is left -> EMPTY
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have been told the generation; waiting for its leader to send the assignment.

    SyncGroup of a follower waits; of the leader: the assignment is written -> STABLE
    Heartbeat: yes · OffsetCommit: REBALANCE_IN_PROGRESS
    JoinGroup of a member with the same protocols: the generation again; with others, or of a new member
    -> PREPARING_REBALANCE
    a member leaves, is lost, or sends no SyncGroup in time; the write fails -> PREPARING_REBALANCE
    """

    STABLE = "Stable"
    """Everybody's assignment is in the log.

    SyncGroup: the assignment · Heartbeat, OffsetCommit: yes
    JoinGroup of a follower with the same protocols: the generation again
    JoinGroup of a known static member without a member id: takes the place of the old one, which is fenced
    JoinGroup of the leader, with other protocols, or of a new member -> PREPARING_REBALANCE
    a member leaves, is lost, or has not sent its SyncGroup in time -> PREPARING_REBALANCE
    """

    # Enum's own is a function of Python's, and states are looked up with each request.
    __hash__ = object.__hash__

    DEAD = "Dead"
    """Deleted, changed into a consumer group, or moved to another broker: COORDINATOR_NOT_AVAILABLE to everybody."""


VALID_PREVIOUS: Final[dict[ClassicState, frozenset[ClassicState]]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.EMPTY, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.STABLE: frozenset({ClassicState.COMPLETING_REBALANCE}),
    ClassicState.DEAD: frozenset(ClassicState),
}

CAN_REBALANCE: Final = VALID_PREVIOUS[ClassicState.PREPARING_REBALANCE]
"""The states in which a rebalance may begin."""
