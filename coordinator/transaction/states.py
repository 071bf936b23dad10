"""The states of a transactional id, which may follow which, and what EndTxn does in each.

Empty, CompleteCommit, CompleteAbort --add partitions--> Ongoing --end--> PrepareCommit | PrepareAbort
PrepareCommit --all markers stand--> CompleteCommit      PrepareAbort --all markers stand--> CompleteAbort
"""

from enum import Enum, IntEnum
from typing import Final, TypeAlias


class TransactionState(IntEnum):
    """The numbers are those of the log (`transaction_status`)."""

    EMPTY = 0
    """A producer has come (InitProducerId) and no transaction has begun since."""
    ONGOING = 1
    """Partitions have been added. Ends by EndTxn, by the next producer of the id, or when its time is up."""
    PREPARE_COMMIT = 2
    """Decided. Markers are being written; everything else is told CONCURRENT_TRANSACTIONS."""
    PREPARE_ABORT = 3
    """As PREPARE_COMMIT, for an abort."""
    COMPLETE_COMMIT = 4
    """All markers stand."""
    COMPLETE_ABORT = 5
    """All markers stand."""
    DEAD = 6
    """About to be forgotten. Never logged: the tombstone says it."""
    PREPARE_EPOCH_FENCE = 7
    """Between the wish to fence a producer and PREPARE_ABORT. Never logged: the abort's record carries the epoch."""

    @property
    def text(self) -> str:
        """As DescribeTransactions and ListTransactions show it: PrepareCommit."""
        return self.name.title().replace("_", "")


S = TransactionState

VALID_PREVIOUS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.ONGOING: frozenset({S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    # Since KIP-890 a transaction may be aborted that has no partitions yet.
    S.PREPARE_ABORT: frozenset({S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),
}

PREPARED: Final = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})
"""Decided, and not over: markers are being written."""
AT_REST: Final = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
"""No transaction runs: the next one may begin, a producer may come, the id may expire."""
ENDED: Final = frozenset({S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
BY_TEXT: Final = {state.text: state for state in TransactionState}


class EndOutcome(Enum):
    """What becomes of EndTxn."""

    DECIDE = "decide"
    """The transaction ends so."""
    ENDED_SO = "ended so"
    """It has ended so before: the answer was lost, and is given again."""
    INVALID = "invalid"
    """INVALID_TXN_STATE."""
    FENCED = "fenced"
    """The coordinator has aborted it meanwhile: PRODUCER_FENCED."""


EndTable: TypeAlias = dict[tuple[TransactionState, bool], EndOutcome]
"""By (state, committed). What isn't there is invalid; in prepared states everybody waits."""

_D, _E, _F = EndOutcome.DECIDE, EndOutcome.ENDED_SO, EndOutcome.FENCED

END_V1: Final[EndTable] = {
    (S.ONGOING, True): _D,
    (S.ONGOING, False): _D,
    (S.COMPLETE_COMMIT, True): _E,
    (S.COMPLETE_ABORT, False): _E,
}
"""Of a client whose epoch stays from one transaction to the next."""

END_V2: Final[EndTable] = {
    (S.ONGOING, True): _D,
    (S.ONGOING, False): _D,
    (S.EMPTY, False): _D,
    (S.COMPLETE_COMMIT, False): _D,
    (S.COMPLETE_ABORT, False): _D,
}
"""Of a client that names the current epoch (KIP-890): it speaks of a transaction of its own."""

END_V2_AGAIN: Final[EndTable] = {
    (S.COMPLETE_COMMIT, True): _E,
    (S.COMPLETE_ABORT, False): _E,
    # No end that is asked for once more turns from abort to commit: this one was late (KAFKA-20785).
    (S.COMPLETE_ABORT, True): _F,
}
"""Of a client that names the epoch before: it asks for an end once more."""
