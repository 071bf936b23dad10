"""What can be used of the dynamic settings that are stored, where not all can.

Another version wrote them, or they no longer fit the static settings. One that is wrong must not take others along,
which may need one another: so it starts from the static settings alone, which fit, and takes in whatever fits beside
what is there already: all at once, else either half of it, singly in the end, or a few together. What stays out is
wrong. So it takes few tries where few are wrong, whatever is stored beside them.

A limit of connections, a setting of security or a promise to keep records that counted and stays out is no reason to go
on without: the broker would be more open, or delete more, than its operator said. Nor are `listeners`, where the static
ones have an address that these had not: it may be the one that was closed.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Final, NamedTuple

from kavka.config.broker_config import BrokerConfig
from kavka.config.dynamic_names import check_dynamic_names
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import row_of, split_prefix
from kavka.config.promises import check_promises, promise_of
from kavka.config.values import Source

PROTECTING: Final = frozenset(
    {
        "listener.security.protocol.map",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.connection.creation.rate",
        "log.retention.ms",
        "log.retention.bytes",
        "log.cleanup.policy",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.delete.retention.ms",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "min.insync.replicas",
        "unclean.leader.election.enable",
    }
)
"""Limits of connections, and what records are kept for; besides, what says who is let in: see `_is_security`."""
MOST_TOGETHER: Final = 3
"""So many settings are tried together that fit only so: `listeners`, `advertised.listeners` and the map."""
MOST_GROUPS: Final = 1_000
"""Of them are tried in all."""
LISTENERS: Final = "listeners"


class Stored(NamedTuple):
    """A dynamic setting as it is stored."""

    name: str
    text: str
    is_own: bool
    """Of this broker, else a default of the cluster."""


class Unused(NamedTuple):
    """A setting that cannot be used, and why."""

    name: str
    reason: ConfigError


def snapshot(old: BrokerConfig, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]) -> BrokerConfig:
    """The snapshot with these dynamic settings in place of the present ones.

    Raises ConfigError for what cannot be changed so, is wrong, does not fit together, or promises a safety that would
    not be given.
    """
    new = old.with_dynamic(cluster_defaults, per_broker)
    check_promises(new)
    return new


def usable_snapshot(
    old: BrokerConfig,
    cluster_defaults: Mapping[str, str],
    per_broker: Mapping[str, str],
    unread: Sequence[Unused] = (),
) -> tuple[BrokerConfig, list[Unused]]:
    """The snapshot that the stored settings make without those that cannot be used, and these.

    `unread`: what is stored besides, and could not even be read. Raises ConfigError where one that protects is among
    them, unless the broker's own hides it.
    """
    listeners = _listener_names(old, cluster_defaults, per_broker)
    for each in unread:
        if each.name == LISTENERS or _protects(each.name, listeners):
            raise _refusal(each.name, each.reason) from each.reason
    try:
        return snapshot(old, cluster_defaults, per_broker), list(unread)
    except ConfigError:
        # Found out below, one by one: the error names one setting at most, and not always the one that is wrong.
        stored_ones = _stored(cluster_defaults, per_broker, listeners)
        faults = {each: fault for each in stored_ones if (fault := _fault_of(each)) is not None}
        usable, misfits = _what_fits(old, [each for each in stored_ones if each not in faults])
    own = {stored.name for stored in usable if stored.is_own}
    unused = list(unread)
    for stored in (*faults, *misfits):
        reason = faults.get(stored) or _misfit(old, [*usable, stored])
        if reason is None:
            continue
        protects = _protects(stored.name, listeners) or (stored.name == LISTENERS and _opens_more(old, stored.text))
        if protects and (stored.is_own or stored.name not in own):
            raise _refusal(stored.name, reason) from reason
        unused.append(Unused(stored.name, reason))
    return _together(old, usable), unused


def _stored(
    cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str], listeners: frozenset[str]
) -> list[Stored]:
    """All that is stored: where one of two has to go, it is the later one."""
    stored = [Stored(name, text, True) for name, text in per_broker.items()]
    stored += [Stored(name, text, False) for name, text in cluster_defaults.items()]
    return sorted(stored, key=lambda each: not _protects(each.name, listeners))


def _fault_of(stored: Stored) -> ConfigError | None:
    """Why it can be used nowhere, whatever stands beside it."""
    rows = BrokerConfig.ALL_ROWS
    try:
        check_dynamic_names({stored.name: stored.text}, rows, per_broker=stored.is_own)
        if (row := row_of(stored.name, rows)) is not None:
            row.parse(stored.text, stored.name)
    except ConfigError as error:
        return error
    return None


def _what_fits(old: BrokerConfig, stored: list[Stored]) -> tuple[list[Stored], list[Stored]]:
    """Those that can be used together, and the rest, of which no few would fit beside them."""
    usable: list[Stored] = []
    left, tries_left = stored, MOST_GROUPS
    while True:
        before = len(left)
        left = _take(old, usable, left)
        if len(left) < before:
            # What has just been taken may be what another one needs.
            continue
        sizes = range(2, min(MOST_TOGETHER, len(left)) + 1)
        groups = islice(chain.from_iterable(combinations(left, size) for size in sizes), tries_left)
        for group in groups:
            tries_left -= 1
            if _misfit(old, [*usable, *group]) is None:
                usable += group
                left = [each for each in left if each not in group]
                break
        else:
            return usable, left


def _take(old: BrokerConfig, usable: list[Stored], group: list[Stored]) -> list[Stored]:
    """Add to `usable` what of the group fits beside it, the earlier before the later; the rest."""
    if not group or _misfit(old, [*usable, *group]) is None:
        usable += group
        return []
    if len(group) == 1:
        return group
    half = len(group) // 2
    return _take(old, usable, group[:half]) + _take(old, usable, group[half:])


def _misfit(old: BrokerConfig, chosen: Sequence[Stored]) -> ConfigError | None:
    try:
        _together(old, chosen)
    except ConfigError as error:
        return error
    return None


def _together(old: BrokerConfig, chosen: Sequence[Stored]) -> BrokerConfig:
    defaults = {stored.name: stored.text for stored in chosen if not stored.is_own}
    own = {stored.name: stored.text for stored in chosen if stored.is_own}
    return snapshot(old, defaults, own)


def _refusal(name: str, reason: ConfigError) -> ConfigError:
    return ConfigError(
        None,
        None,
        f"{name} was changed while the broker ran, and cannot be used now: {reason} "
        f"(kavka storage settings --delete {name} takes it back)",
    )


def _protects(name: str, listeners: frozenset[str]) -> bool:
    prefixed = split_prefix(name)
    return (name if prefixed is None else prefixed[1]) in PROTECTING or _is_security(name, listeners)


def _opens_more(old: BrokerConfig, text: str) -> bool:
    """Whether the static settings' listeners are some that the text has not."""
    return not _endpoints(_static_listeners(old)) <= _endpoints(text)


def _endpoints(text: str) -> set[str]:
    return {part.strip().upper() for part in text.split(",")}


def _static_listeners(old: BrokerConfig) -> str:
    return dict(old.layers)[Source.STATIC_BROKER].get(LISTENERS, str(BrokerConfig.ROWS[LISTENERS].default))


def _listener_names(old: BrokerConfig, *layers: Mapping[str, str]) -> frozenset[str]:
    """Those that there may be, whichever text comes to count; in lower case."""
    default = str(BrokerConfig.ROWS[LISTENERS].default)
    given = ",".join([default, _static_listeners(old), *(each.get(LISTENERS, "") for each in layers)])
    return frozenset(part.partition("://")[0].strip().lower() for part in given.split(","))


def _is_security(name: str, listeners: frozenset[str]) -> bool:
    """Whether it says who is let in by one of these listeners, and how.

    What counts without it may let in more: passwords of users that are no more, or clients that are asked for no
    certificate.
    """
    prefixed = split_prefix(name)
    if prefixed is not None and prefixed[0] not in listeners:
        return False
    if promise_of(name) is not None:
        return True
    row = row_of(name, BrokerConfig.ALL_ROWS)
    return row is not None and row.ignored is None and row.name.startswith(("ssl.", "sasl.", "connections.max.reauth"))
