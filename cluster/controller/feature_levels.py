"""`/feature` as its one writer, the controller, keeps it (KIP-584): made once, and changed when an operator asks.

A level is agreed on when every registered broker can do it. The node is made with the highest ones of that moment, and
nothing raises them later by itself: a Kafka broker stops when the cluster has agreed on something that it lacks. So the
node is made empty where such are to come, which a given `inter.broker.protocol.version` says: up to 3.9 none has any.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import BadVersionError, Create, NodeExistsError, NoNodeError, Operation, SetData
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

# In Kafka's words, which people search for.
_REFUSED: Final = (
    "The update failed for all features since the following feature had an error: "
    "Invalid update version {} for feature {}. {}"
)
_NO_DOWNGRADE: Final = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


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


def update_features(term: Term, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
    """Raise, lower or drop what is agreed on: all that is asked for, or nothing.

    Raises BrokerError(INVALID_UPDATE_VERSION) for the first that cannot be, and ZnodeError when what is agreed on
    cannot be read.
    """
    while True:
        found = term.store.node(FEATURE_PATH)
        before = FeatureLevels.decode(found[0]).levels if found is not None else {}
        levels = dict(before)
        for update in updates:
            problem = _problem(update, before.get(update.name, 0), term.context.brokers)
            if problem is not None:
                raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, _REFUSED.format(update.level, update.name, problem))
            levels[update.name] = update.level
        levels = {name: level for name, level in levels.items() if level}
        if validate_only or levels == before:
            return
        data = FeatureLevels(levels).encode()
        try:
            term.store.write_all(
                [Create(FEATURE_PATH, data) if found is None else SetData(FEATURE_PATH, data, found[1])]
            )
        except (NodeExistsError, BadVersionError, NoNodeError):
            continue
        log.info("the cluster agrees on features: %s", levels or "none")
        return


def common_levels(brokers: Iterable[BrokerInfo]) -> dict[str, int]:
    """The highest level of each feature that all brokers can; features that some of them lack are left out."""
    ranges = [{each.name: (each.lowest, each.highest) for each in broker.features} for broker in brokers]
    levels = {}
    for name in sorted(set.intersection(*map(set, ranges))) if ranges else ():
        level = min(highest for _, highest in (each[name] for each in ranges))
        if level >= max(1, *(lowest for lowest, _ in (each[name] for each in ranges))):
            levels[name] = level
    return levels


def _problem(update: FeatureUpdate, now: int, brokers: Mapping[int, BrokerInfo]) -> str | None:
    """Why it cannot be, by the rules of Kafka's controllers without ZooKeeper; `now` is 0 if nothing is agreed on."""
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if update.level == 0:
        # What no broker can do any more may yet be dropped.
        lacking = sorted(brokers) if not (now or any(map(partial(_knows, update.name), brokers.values()))) else []
    else:
        lacking = sorted(broker for broker, info in brokers.items() if not _can(info, update))
    if lacking:
        return f"Brokers {lacking} do not support this feature at that version."
    if update.level < now and update.upgrade_type is UpgradeType.UPGRADE:
        return _NO_DOWNGRADE
    if update.level > now and update.upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _knows(name: str, broker: BrokerInfo) -> bool:
    return any(each.name == name for each in broker.features)


def _can(broker: BrokerInfo, update: FeatureUpdate) -> bool:
    return any(each.name == update.name and each.lowest <= update.level <= each.highest for each in broker.features)
