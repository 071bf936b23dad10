"""When regular expressions are resolved, and what follows."""

from functools import partial
from typing import TYPE_CHECKING

from kavka.coordinator.group.consumer import records
from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.coordinator.group.consumer.regex import Resolution, is_due
from kavka.coordinator.group.consumer.viewers import visible
from kavka.coordinator.runtime.result import NOTHING, Result

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.decisions import Decisions


class Resolutions:
    """Runs a group's resolution in slices, each an operation of its own; guarded by the shard's lock."""

    __slots__ = ("_decisions",)

    def __init__(self, decisions: "Decisions") -> None:
        self._decisions = decisions

    def look(self, group: ConsumerGroup) -> None:
        """Begin a resolution if one is due and none is under way. Cheap if not."""
        context, known = self._decisions.context, self._decisions.known
        at_ms, version = context.monotonic_ms(), known.version
        logged, viewers = group.logged, group.viewers
        if group.regex_resolution is not None or not is_due(
            logged, group.regex_looked_at_ms, at_ms, version, may_match_more=viewers.are_fewer
        ):
            return
        who = viewers.of(logged.members)
        group.regex_resolution = Resolution(list(logged.regexes), known.names(), version, context.now_ms(), who)
        group.regex_looked_at_ms = at_ms
        viewers.are_fewer = False
        self._go_on(group)

    def _go_on(self, group: ConsumerGroup) -> None:
        key = ("consumer-regex", group.group_id)
        self._decisions.context.timers.schedule(key, 0, partial(self._slice, group.group_id))

    def _slice(self, group_id: str) -> Result:
        group = self._decisions.table.get(group_id)
        if not isinstance(group, ConsumerGroup) or (resolution := group.regex_resolution) is None:
            return NOTHING
        # Whatever goes wrong from here on, the next heartbeats may begin another one.
        group.regex_resolution = None
        if not resolution.step():
            group.regex_resolution = resolution
            self._go_on(group)
            return NOTHING
        return self._resolved(group, resolution)

    def _resolved(self, group: ConsumerGroup, resolution: Resolution) -> Result:
        """Write down what was found; the group gets an epoch if that is not what it was.

        So it does for an expression that is new and matches nothing: the targets still are for what its members were
        subscribed to before, which others may be waiting for.
        """
        change = self._decisions.change(group.logged)
        differs = False
        viewers = group.viewers.of(group.logged.members)
        for regex in [*resolution.found, *resolution.refused]:
            if regex not in group.logged.regexes:
                continue
            known = group.logged.resolved.get(regex)
            topics = resolution.found.get(regex, set() if known is None else known.topics)
            # Who came meanwhile.
            others = viewers.get(regex, {}).keys() - resolution.viewers.get(regex, {}).keys()
            if others:
                topics = visible(topics, [viewers[regex][each] for each in others])
            differs = differs or known is None or known.topics != topics
            change.write(
                records.resolved_regex(group.group_id, regex, topics, resolution.version, resolution.started_ms)
            )
        change.look_at_topics(bump=differs)
        return self._decisions.decided(
            change, (), "regular expressions were resolved", lambda resolved: resolved.viewers.looked(viewers)
        )
