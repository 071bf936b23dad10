"""Looking at one thing in the tree when a term begins, and again whenever it changes."""

from __future__ import annotations

from collections.abc import Callable

from kavka.cluster.controller.event_queue import EventQueue
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import Watch, WatchEvent

Serve = Callable[[Callable[[Term], None]], None]
"""Runs a look on the controller's thread, if there is a term."""


class Look:
    """One thing to look at, with the watch that has it looked at again.

    Threads: `changed` runs on the registry's thread, which it does not hold; all else on the controller's.
    """

    __slots__ = ("_events", "_look", "_serve")

    def __init__(self, events: EventQueue, serve: Serve, look: Callable[[Term, Watch], object]) -> None:
        self._events = events
        self._serve = serve
        self._look = look

    def look(self, term: Term) -> None:
        self._look(term, self.changed)

    def changed(self, event: WatchEvent) -> None:
        self._events.notice(self._again)

    def _again(self) -> None:
        self._serve(self.look)
