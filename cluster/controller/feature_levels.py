"""`/feature` as its one writer, the controller, keeps it (KIP-584): made once, and changed when an operator asks.

A level is agreed on when every registered broker can do it. The node is made with the highest ones of that moment, and
nothing raises them later by itself: a Kafka broker stops when the cluster has agreed on something that it lacks. So the
node is made empty where such are to come, which a given `inter.broker.protocol.version` says: up to 3.9 none has any.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import BadVersionError, Create, NodeExistsError, NoNodeError, Operation, SetData
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)


def agree(term: Term) -> None:
    """Make the node if there is none; enable it, with nothing agreed on, if an older cluster has disabled it.

    What an earlier Kavka wrote is written as Kafka reads it.
    """
    found = term.store.node(FEATURE_PATH)
    operation: Operation
    levels: dict[str, int] = {}
    try:
        if found is None:
            if not term.settings.current.awaits_other_releases:
                levels = common_levels(term.context.brokers.values())
            operation = Create(FEATURE_PATH, FeatureLevels(levels).encode())
        elif FeatureLevels.is_enabled(found[0]):
            if not FeatureLevels.is_for_kavka_alone(found[0]):
                return
            levels = FeatureLevels.decode(found[0]).levels
            operation = SetData(FEATURE_PATH, FeatureLevels(levels).encode(), found[1])
        else:
            operation = SetData(FEATURE_PATH, FeatureLevels(levels).encode(), found[1])
        term.store.write_all([operation])
    except ZnodeError as error:
        log.error("no features are agreed on: %s", error)
    except (NodeExistsError, BadVersionError, NoNodeError):
        log.warning("%s was written by somebody else", FEATURE_PATH)
    else:
        log.info("the cluster agrees on features: %s", levels or "none")


def update_features(
    term: Term, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, all_or_none: bool = False
) -> dict[str, BrokerError | None]:
    """Raise, lower or drop what is agreed on; the outcome by feature.

    With `all_or_none` nothing is written when one of them is refused. Raises ZnodeError when what is agreed on cannot
    be read.
    """
    while True:
        found = term.store.node(FEATURE_PATH)
        before = FeatureLevels.decode(found[0]).levels if found is not None else {}
        levels = dict(before)
        outcomes: dict[str, BrokerError | None] = {}
        for update in updates:
            problem = _problem(update, before.get(update.name), term.context.brokers)
            outcomes[update.name] = BrokerError(ErrorCode.INVALID_REQUEST, problem) if problem else None
            if problem is None and update.level >= 1:
                levels[update.name] = update.level
            elif problem is None:
                levels.pop(update.name, None)
        if validate_only or levels == before or (all_or_none and any(outcomes.values())):
            return outcomes
        data = FeatureLevels(levels).encode()
        try:
            term.store.write_all(
                [Create(FEATURE_PATH, data) if found is None else SetData(FEATURE_PATH, data, found[1])]
            )
        except (NodeExistsError, BadVersionError, NoNodeError):
            continue
        log.info("the cluster agrees on features: %s", levels or "none")
        return outcomes


def common_levels(brokers: Iterable[BrokerInfo]) -> dict[str, int]:
    """The highest level of each feature that all brokers can; features that some of them lack are left out."""
    ranges = [{each.name: (each.lowest, each.highest) for each in broker.features} for broker in brokers]
    levels = {}
    for name in sorted(set.intersection(*map(set, ranges))) if ranges else ():
        level = min(highest for _, highest in (each[name] for each in ranges))
        if level >= max(1, *(lowest for lowest, _ in (each[name] for each in ranges))):
            levels[name] = level
    return levels


def _problem(update: FeatureUpdate, now: int | None, brokers: Mapping[int, BrokerInfo]) -> str | None:
    """Why it cannot be; Kafka's rules for a cluster on ZooKeeper."""
    if not update.name:
        return "A feature has a name."
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The upgrade type is unknown."
    if update.level < 1:
        if update.upgrade_type is UpgradeType.UPGRADE:
            return f"Level {update.level} is below 1, which takes a downgrade."
        return None if now is not None else "The feature is not in use."
    if update.level == now:
        return f"The level is {now} already."
    if now is not None and (update.level < now) is (update.upgrade_type is UpgradeType.UPGRADE):
        wanted = "an upgrade" if update.upgrade_type is UpgradeType.UPGRADE else "a downgrade"
        return f"From level {now} to {update.level} is not {wanted}."
    lacking = sorted(broker for broker, info in brokers.items() if not _can(info, update))
    return f"Brokers {lacking} cannot do level {update.level} of {update.name}." if lacking else None


def _can(broker: BrokerInfo, update: FeatureUpdate) -> bool:
    return any(each.name == update.name and each.lowest <= update.level <= each.highest for each in broker.features)
