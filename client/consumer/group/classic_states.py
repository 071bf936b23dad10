"""How far a member of a classic group is.

UNJOINED --poll--> PREPARING --step--> JOINING --leads--> LEADING --step--> SYNCING --> STABLE
    ^                                     \\-----------follows------------/               |
    |                                                                                     | rebalance
    \\-- not a member any more (then `Lose` comes before the next Prepare) --             PREPARING ...
"""

import enum
from typing import Final


class State(enum.Enum):
    """How far the membership is."""

    UNJOINED = "unjoined"
    PREPARING = "preparing"
    """The polling thread gives up what it has to."""
    JOINING = "joining"
    LEADING = "leading"
    """The polling thread shares out."""
    SYNCING = "syncing"
    STABLE = "stable"


BEATING: Final = frozenset({State.PREPARING, State.LEADING, State.STABLE})
"""Who waits for JoinGroup's or SyncGroup's answer is known to be alive."""
COMMITTING: Final = frozenset({State.PREPARING, State.STABLE})
ASKING: Final = frozenset({State.JOINING, State.SYNCING})
