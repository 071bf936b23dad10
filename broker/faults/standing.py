"""The faults that stand, for all brokers that they can reach: which of them a request meets."""

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kavka.broker.faults.fault import Fault
from kavka.broker.faults.hit import Action
from kavka.broker.faults.target import Target

if TYPE_CHECKING:
    from kavka.broker.faults.full_disk import FillableFiles
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

MOST_FAULTS: Final = 1_000
"""That stand at once; spent ones make room."""


class Rule(NamedTuple):
    """What a fault does to which requests."""

    fault: Fault
    target: Target
    action: Action


class Reached(Protocol):
    """A broker as faults reach it."""

    @property
    def services(self) -> "Services": ...

    @property
    def files(self) -> "FillableFiles": ...

    @property
    def broker_id(self) -> int: ...


class StandingFaults:
    """A request meets the oldest fault that hits it, and no other.

    Threads: any; `_lock` guards changes. Rules, freezes and brokers are replaced whole, and read without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_id = 0
        self._faults: tuple[Fault, ...] = ()
        self._rules: tuple[Rule, ...] = ()
        self._freezes: tuple[tuple[Fault, int | None], ...] = ()
        self._tied: tuple[tuple[Fault, int | None], ...] = ()
        self.brokers: tuple[Reached, ...] = ()
        """Those that serve."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing was ever asked for that may still matter."""
        return not self._faults

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Those that were asked for and not cleared, the oldest first; spent ones too, for their counts."""
        return self._faults

    def attach(self, broker: Reached) -> None:
        """A broker serves."""
        with self._lock:
            self.brokers = (*self.brokers, broker)

    def detach(self, broker: Reached) -> None:
        """A broker stops: what is tied to it is over, so that the stop can come to its end."""
        with self._lock:
            self.brokers = tuple(each for each in self.brokers if each is not broker)
            tied = [fault for fault, broker_id in self._tied if broker_id in (None, broker.broker_id)]
        for fault in tied:
            fault.clear()

    def new(self, kind: str, *, times: int | None = None, words: str = "") -> Fault:
        """A fault that hits nothing yet. Raises ValueError: a wrong `times`, or too many faults stand."""
        with self._lock:
            if len(self._faults) >= MOST_FAULTS:
                self._forget([each for each in self._faults if each.is_spent])
            if len(self._faults) >= MOST_FAULTS:
                raise ValueError(f"{MOST_FAULTS} faults stand already: clear some")
            self._last_id += 1
            fault = Fault(self._last_id, kind, times=times, words=words)
            self._faults = (*self._faults, fault)
        fault.when_cleared(lambda: self._cleared(fault))
        return fault

    def add_rules(self, *rules: Rule) -> None:
        """From now on requests meet these, behind those that stand."""
        with self._lock:
            self._rules = (*self._rules, *[rule for rule in rules if not rule.fault.is_cleared])

    def freeze(self, fault: Fault, broker_id: int | None) -> None:
        """From now on that broker is frozen; None for all. It ends with the broker."""
        self.tie(fault, broker_id)
        with self._lock:
            if not fault.is_cleared:
                self._freezes = (*self._freezes, (fault, broker_id))

    def tie(self, fault: Fault, broker_id: int | None) -> None:
        """Have a fault cleared when that broker stops; None: when any does."""
        with self._lock:
            if not fault.is_cleared:
                self._tied = (*self._tied, (fault, broker_id))

    def freeze_of(self, broker_id: int) -> Fault | None:
        """What freezes this broker."""
        for fault, of_broker in self._freezes:
            if of_broker in (None, broker_id) and not fault.is_cleared:
                return fault
        return None

    def thawed(self) -> list[Reached]:
        """The brokers that serve and are not frozen."""
        return [each for each in self.brokers if self.freeze_of(each.broker_id) is None]

    def meet(self, request: Any, context: "Context", services: "Services") -> Rule | None:
        """The rule that this request is hit by; that counts as one hit of its fault."""
        for rule in self._rules:
            if not rule.fault.is_spent and rule.target.hits(request, context, services) and rule.fault.take():
                return rule
        return None

    def clear(self) -> None:
        """Take all back."""
        for fault in self._faults:
            fault.clear()

    def _cleared(self, fault: Fault) -> None:
        with self._lock:
            self._forget([fault])

    def _forget(self, gone: list[Fault]) -> None:
        """Under the lock."""
        self._faults = tuple(each for each in self._faults if each not in gone)
        self._rules = tuple(rule for rule in self._rules if rule.fault not in gone)
        self._freezes = tuple(each for each in self._freezes if each[0] not in gone)
        self._tied = tuple(each for each in self._tied if each[0] not in gone)
