"""The broker stops, or is killed, in the middle of a rebalance and of commits: groups come back, offsets stand."""

from functools import partial
from pathlib import Path

import pytest

from tests.integration.conftest import broker_class
from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, Feeder, Group, Member
from tests.support.server import RunningServer

pytestmark = pytest.mark.java
BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 4
RANGE = {"partition.assignment.strategy": "range", "session.timeout.ms": "10000"}
NEW = {"group.protocol": "consumer"}
KINDS = {"classic": RANGE, "cooperative": {**RANGE, "partition.assignment.strategy": "cooperative-sticky"}, "new": NEW}


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_broker_that_restarts_in_the_middle_of_commits_loses_none(
    broker: RunningServer, new_group: NewGroup, java: str, way: str
) -> None:
    """Members go on with the generation they had: the broker has read the group back from its log."""
    groups = {kind: new_group(kind) for kind in KINDS}
    feeders = {}
    for kind, group in groups.items():
        group.create_topic(PARTITIONS)
        group.join("confluent", KINDS[kind])
        group.join(java if kind == "new" else "confluent", KINDS[kind])
        feeders[kind] = Feeder(broker, group.topic, PARTITIONS)
    for kind, group in groups.items():
        group.wait_until_shared(group.members, PARTITIONS)
        feeders[kind].__enter__()
    try:
        for group in groups.values():
            for member in group.members:
                member.wait_for(lambda one: one.of("committed"))
        getattr(broker, way)()
        broker.start()
        ends = {kind: feeder.stop() for kind, feeder in feeders.items()}
    finally:
        for feeder in feeders.values():
            feeder.__exit__(None, None, None)
    for kind, group in groups.items():
        group.wait_until_done(ends[kind])
        group.assert_sound(ends[kind])


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_broker_that_restarts_in_the_middle_of_a_rebalance_finishes_it(
    broker: RunningServer, new_group: NewGroup, way: str
) -> None:
    """A frozen member keeps the rebalance open while the broker goes; the others rejoin a group read anew."""
    groups = {kind: new_group(kind) for kind in ("classic", "cooperative")}
    for kind, group in groups.items():
        group.create_topic(PARTITIONS)
        group.join("confluent", KINDS[kind])
        group.join("confluent", KINDS[kind])
    for group in groups.values():
        group.wait_until_shared(group.members, PARTITIONS)
    awake = groups["classic"].members[1]
    revoked = len(awake.of("revoked"))
    with Feeder(broker, groups["classic"].topic, PARTITIONS) as feeder:
        for kind, group in groups.items():
            group.members[0].freeze()
            group.join("confluent", KINDS[kind])
        # Who is awake has joined again when it has given up its partitions, and waits for the frozen one.
        awake.wait_for(lambda one: len(one.of("revoked")) > revoked)
        getattr(broker, way)()
        broker.start()
        for group in groups.values():
            group.members[0].thaw()
            group.wait_until_shared(group.members, PARTITIONS)
        ends = feeder.stop()
    groups["classic"].wait_until_done(ends)
    groups["classic"].assert_sound(ends, zombies=groups["classic"].members[:1])


def test_offsets_and_members_survive_many_kills(tmp_path: Path, topic: str) -> None:
    """Kill -9 again and again while members commit: each take-over begins at an acknowledged commit or later."""
    with broker_class()(tmp_path / "broker", BROKER_SETTINGS) as broker:
        groups = {name: Group(broker, _made(tmp_path / name), f"{topic}.{name}") for name in ("classic", "new")}
        try:

            def story(name: str) -> None:
                group = groups[name]
                group.create_topic(PARTITIONS)
                members = [group.join("confluent", KINDS[name]) for _ in range(2)]
                group.wait_until_shared(members, PARTITIONS)

            each_at_once(list(groups), story)
            with (
                Feeder(broker, groups["classic"].topic, PARTITIONS) as first,
                Feeder(broker, groups["new"].topic, PARTITIONS) as second,
            ):
                for _ in range(3):
                    for group in groups.values():
                        counts = {one.name: len(one.of("committed")) for one in group.members}
                        group.members[0].wait_for(partial(has_committed_more, counts))
                    broker.kill()
                    broker.start()
                ends = {"classic": first.stop(), "new": second.stop()}
            for name, group in groups.items():
                group.wait_until_done(ends[name])
                group.assert_sound(ends[name])
        finally:
            for group in groups.values():
                group.end()


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def has_committed_more(before: dict[str, int], one: Member) -> bool:
    return len(one.of("committed")) > before[one.name]
