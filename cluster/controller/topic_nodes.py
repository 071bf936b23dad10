"""Topics as others write them into the tree: tools that make topics, give them more partitions, or take them out.

Kafka's own brokers make and grow topics so, whichever broker is the controller, and every controller has to lead what
it finds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.event_queue import EventQueue
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import WatchEvent
from kavka.cluster.topic_names import is_topic_name
from kavka.cluster.znodes.topic import TopicAssignment

log = logging.getLogger(__name__)


class TopicNodes:
    """The nodes of all topics, read when a term begins and watched from then on.

    Threads: owned by the controller's thread, but for `_changed`, which the registry's thread adds to and the
    controller's takes from, one at a time.
    """

    __slots__ = ("_changed", "_events", "_serve", "_strangers", "_watched")

    def __init__(self, events: EventQueue, serve: Callable[[Callable[[Term], None]], None]) -> None:
        """`serve` runs a look on the controller's thread, if there is a term."""
        self._events = events
        self._serve = serve
        self._watched: set[str] = set()
        self._strangers: set[str] = set()
        self._changed: dict[str, None] = {}

    def load(self, term: Term) -> None:
        """Read all topics into a term that begins."""
        names = self._names(term)
        self._watched = set(names)
        term.load_topics(term.store.assignments(names, self._on_data))

    def _names(self, term: Term) -> list[str]:
        """Of topics. What else lies beside them is logged once: a broker could not make a folder of its name."""
        names = term.store.topic_names(self._on_children)
        strangers = {name for name in names if not is_topic_name(name)}
        if strangers - self._strangers:
            log.error("no topics, and left out: %.200r", sorted(strangers - self._strangers))
        self._strangers = strangers
        return [name for name in names if name not in strangers] if strangers else names

    # On the registry's thread

    def _on_children(self, event: WatchEvent) -> None:
        self._events.notice(self._serve_children)

    def _on_data(self, event: WatchEvent) -> None:
        self._changed[event.path.rpartition("/")[2]] = None
        self._events.notice(self._serve_changed)

    # On the controller's

    def _serve_children(self) -> None:
        self._serve(self._look_at_children)

    def _serve_changed(self) -> None:
        self._serve(self._look_at_changed)

    def _look_at_children(self, term: Term) -> None:
        names = self._names(term)
        existing = set(names)
        self._watched &= existing
        for name in term.context.assignments.keys() - existing - term.context.deleting.keys():
            term.context.remove_topic(name)
        self._take_in(term, [name for name in names if name not in self._watched])

    def _look_at_changed(self, term: Term) -> None:
        names = []
        while self._changed:
            names.append(self._changed.popitem()[0])
        self._take_in(term, sorted(names))

    def _take_in(self, term: Term, names: Iterable[str]) -> None:
        found = term.store.assignments(list(names), self._on_data)
        self._watched.update(found)
        known = term.context.assignments
        partitions = term.load_topics({name: each for name, each in found.items() if name not in known})
        partitions += _growth(term, {name: each for name, each in found.items() if name in known})
        term.found(partitions)
        term.settle()


def _growth(term: Term, found: Mapping[str, TopicAssignment]) -> list[TopicPartition]:
    """Take in partitions that the tree has and memory has not; a topic on its way out gets none."""
    grown: list[TopicPartition] = []
    for name, stored in found.items():
        known = term.context.assignments[name]
        added = [partition for partition in stored.replicas if partition not in known.replicas]
        if not added:
            continue
        if name in term.context.deleting:
            log.warning("topic %s gets no partitions %s: it is being deleted", name, added)
            term.store.amend_assignments({name: partial(TopicAssignment._replace, replicas=known.replicas)})
            continue
        log.info("topic %s was given partitions %s", name, added)
        new = {partition: stored.of(partition) for partition in added}
        term.context.put_topic(name, known.moved(new))
        grown += [(name, partition) for partition in added]
    term.context.leaders.update(term.store.states(grown))
    return grown
