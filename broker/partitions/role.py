"""A partition's role on this broker: one immutable value, swapped whole, so that its readers see one moment's."""

from typing import Final, NamedTuple, Protocol

from kavka.protocol.errors import ErrorCode

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1
"""`leader_recovery_state` (KIP-704): the leader was elected from outside the ISR, and may lack committed records."""


class PendingIsr(NamedTuple):
    """An ISR that the leader asked the controller for, which has neither granted nor refused it (KIP-497).

    Told apart by identity: an answer to any other than the role's is out of date.
    """

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Of each of them, as its fetches said; -1 where none came yet (KIP-903)."""
    leader_epoch: int
    partition_epoch: int
    """The state that it would replace."""
    is_expansion: bool


class GrantedIsr(NamedTuple):
    """A partition's state as the controller answers it."""

    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    recovery_state: int


class Proposer(Protocol):
    """A partition that asks for another ISR."""

    topic: str
    index: int
    topic_id: bytes

    def isr_answered(self, pending: PendingIsr, answer: GrantedIsr | ErrorCode) -> bool:
        """What the controller said. True: ask once more, for it is not known whether it did anything."""


class PartitionRole(NamedTuple):
    """Who leads a partition, in which epoch, with whom.

    `leader_epoch` grows with each election, `partition_epoch` (the state node's version) with each change of leader or
    ISR, `controller_epoch` is that of the last order.
    """

    is_leader: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    controller_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    """The committed one, of a leader; a follower does not hear of its changes, and has none."""
    maximal_isr: tuple[int, ...] = ()
    """The ISR with whom the leader has asked to add. Who is to be removed stays until the controller agrees."""
    is_sole: bool = False
    """Leads, and there is no other replica: what is appended is committed."""
    pending: PendingIsr | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovery_state: int = RECOVERED
    epoch_start_offset: int = NO_OFFSET
    """Where the log ended when this broker began to lead in `leader_epoch`; -1 of a follower."""
    led_since_epoch: int = NO_EPOCH
    """The epoch in which this broker began to lead: since then it has followed nobody, and cut nothing off its log."""

    def has_led_since(self, leader_epoch: int) -> bool:
        """Whether what this broker appended as the leader in that epoch is in its log still.

        The epoch grows under a leader that stays, too, as when the controller takes a dead broker from the ISR.
        """
        return self.is_leader and self.led_since_epoch <= leader_epoch

    def asking(self, pending: PendingIsr) -> "PartitionRole":
        """While the controller is asked for another ISR.

        Growing counts at once, for it only holds the high watermark back; shrinking counts when it is granted.
        """
        maximal = pending.isr if pending.is_expansion else self.isr
        return self._replace(pending=pending, maximal_isr=maximal)

    def committed(self, isr: tuple[int, ...], partition_epoch: int, recovery_state: int) -> "PartitionRole":
        """When the controller has said what the ISR is."""
        return self._replace(
            isr=isr, maximal_isr=isr, pending=None, partition_epoch=partition_epoch, recovery_state=recovery_state
        )

    def given_up(self) -> "PartitionRole":
        """When it is certain that the controller did not do what it was asked for."""
        return self._replace(maximal_isr=self.isr, pending=None)

    @property
    def is_under_replicated(self) -> bool:
        """Whether it leads and replicas are missing in the ISR, not counting those that a reassignment adds."""
        return self.is_leader and len(self.isr) < len(self.replicas) - len(self.adding)

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is under way, as far as the controller has told."""
        return bool(self.adding or self.removing)

    def effective_min_isr(self, min_insync_replicas: int) -> int:
        """How many in-sync replicas acks=all asks for: never more than are assigned."""
        return min(min_insync_replicas, len(self.replicas))


NO_ROLE: Final = PartitionRole()
