"""What is done to the cluster: each fault strikes, and gives what mends it again; a deck deals them in random order.

Whom a fault strikes depends on who leads at the moment, everything else on the dice.
"""

import contextlib
import errno
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.chaos.brokers import ChaosBroker
from tests.chaos.load import MOVED, PARTITIONS
from tests.chaos.network import Way
from tests.chaos.stage import IDS, SESSION_S, Stage, zookeeper_name
from tests.support.processes import let_pass, wait_until

REASSIGN_S: Final = 2 * SESSION_S
ROLL_STOP_S: Final = 120.0
ROLL_START_S: Final = 300.0
HOUR_S: Final = 3600.0
MOST_MOVES: Final = 6
MOVE_VERSION: Final = 2
MOVE_S: Final = 10.0


class Struck(NamedTuple):
    """A fault that goes on: what it is, for how long, and how it ends."""

    what: str
    duration_s: float
    mend: Callable[[], None]
    breaks_disk: bool = False


Fault: TypeAlias = Callable[[Stage, random.Random], Struck]


def kill_a_leader(stage: Stage, dice: random.Random) -> Struck:
    return _kill(_a_leader(stage, dice), dice)


def kill_the_controller(stage: Stage, dice: random.Random) -> Struck:
    return _kill(_the_controller(stage, dice), dice)


def kill_all(stage: Stage, dice: random.Random) -> Struck:
    order = dice.sample(list(stage.brokers.values()), len(stage.brokers))
    for broker in order:
        broker.kill()

    def mend() -> None:
        for broker in order:
            broker.spawn()
            let_pass(dice.uniform(0, 1))

    return Struck("kill -9 of all brokers", dice.uniform(0, SESSION_S), mend)


def freeze_a_leader(stage: Stage, dice: random.Random) -> Struck:
    return _freeze(_a_leader(stage, dice), dice.uniform(1.3, 2.5) * SESSION_S)


def freeze_the_controller(stage: Stage, dice: random.Random) -> Struck:
    return _freeze(_the_controller(stage, dice), dice.uniform(1.3, 2.5) * SESSION_S)


def freeze_briefly(stage: Stage, dice: random.Random) -> Struck:
    return _freeze(dice.choice(list(stage.brokers.values())), dice.uniform(0.1, 0.6) * SESSION_S)


def cut_two_brokers(stage: Stage, dice: random.Random) -> Struck:
    one, other = dice.sample(IDS, 2)
    ways = _ways(dice, stage.brokers[one].name, stage.brokers[other].name)
    return _cut(stage, dice, ways, dice.uniform(2, 12))


def cut_a_broker_off(stage: Stage, dice: random.Random) -> Struck:
    """From the other brokers, not from ZooKeeper."""
    one = _a_leader(stage, dice)
    kind = dice.randrange(3)
    others = [broker.name for broker in stage.brokers.values() if broker is not one]
    ways = [way for other in others for way in _pair(kind, one.name, other)]
    return _cut(stage, dice, ways, dice.uniform(2, 12))


def cut_from_zookeeper(stage: Stage, dice: random.Random) -> Struck:
    one = dice.choice([_a_leader(stage, dice), _the_controller(stage, dice)])
    kind = dice.randrange(3)
    ways = [way for member in stage.zookeepers.members for way in _pair(kind, one.name, zookeeper_name(member))]
    return _cut(stage, dice, ways, dice.uniform(0.3, 2.5) * SESSION_S)


def cut_from_one_zookeeper(stage: Stage, dice: random.Random) -> Struck:
    broker = dice.choice(list(stage.brokers.values()))
    member = dice.choice(stage.zookeepers.members)
    return _cut(stage, dice, _ways(dice, broker.name, zookeeper_name(member)), dice.uniform(2, 12))


def kill_zookeepers_leader(stage: Stage, dice: random.Random) -> Struck:
    leader = stage.zookeepers.leader() or dice.choice(stage.zookeepers.members)
    leader.kill()
    return Struck(f"kill -9 of ZooKeeper's leader, {zookeeper_name(leader)}", dice.uniform(0, 6), leader.spawn)


def kill_all_zookeepers(stage: Stage, dice: random.Random) -> Struck:
    for member in stage.zookeepers.members:
        member.kill()

    def mend() -> None:
        for member in stage.zookeepers.members:
            member.spawn()

    return Struck("kill -9 of all ZooKeepers", dice.uniform(0, 2.5) * SESSION_S, mend)


def fill_a_disk(stage: Stage, dice: random.Random) -> Struck:
    broker = _a_leader(stage, dice)
    size_bytes = broker.longest_file_bytes() * dice.randrange(50, 100) // 100
    broker.limit_files(size_bytes)
    what = f"{broker.name}'s disk takes no file beyond {size_bytes} bytes"
    return Struck(what, dice.uniform(1, 6), lambda: broker.limit_files(None), breaks_disk=True)


def break_a_disk(stage: Stage, dice: random.Random) -> Struck:
    """One of a broker's two: its replicas are gone until a restart with the disk in order; at times one without."""
    broker = _a_leader(stage, dice)
    index, error = dice.randrange(len(broker.log_dirs)), dice.choice((errno.EIO, errno.EIO, errno.EROFS))
    broker.break_disk(index, error)
    restarts_without, restarts_softly = dice.random() < 0.3, dice.random() < 0.5
    if restarts_without:
        let_pass(dice.uniform(0, 3))
        broker.kill()
        broker.spawn()

    def mend() -> None:
        broker.break_disk(index, 0)
        broker.thaw()
        if restarts_softly:
            broker.terminate(ROLL_STOP_S)
        else:
            broker.kill()
        broker.spawn()

    what = f"{broker.name}'s disk {index} fails with {os.strerror(error)}{', and it restarts' * restarts_without}"
    return Struck(what, dice.uniform(1, 10), mend, breaks_disk=True)


def move_logs(stage: Stage, dice: random.Random) -> Struck:
    """From a log directory of one broker to the other one, or back before they have arrived.

    No fault by itself, but it goes on while others strike.
    """
    broker = _a_leader(stage, dice)
    places = [place for place, state in sorted(stage.partitions().items()) if broker.broker_id in state.replicas]
    targets: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, index in dice.sample(places, min(len(places), dice.randint(1, MOST_MOVES))):
        lies_in = [folder.parent for folder in broker.folders_of((topic, index))]
        other = [each for each in broker.log_dirs if each not in lies_in]
        # Where the log is already: that ends a move.
        targets[str(dice.choice([*broker.log_dirs, *(other or broker.log_dirs) * 2]))][topic].append(index)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=each) for name, each in topics.items()]
            )
            for path, topics in targets.items()
        ]
    )
    try:
        answer = stage.ask(broker.broker_id, request, MOVE_VERSION, MOVE_S)
        told = repr([ErrorCode(each.error_code).name for topic in answer.results for each in topic.partitions])
    except OSError as failure:
        told = repr(failure)
    asked = {path.rpartition("/")[2]: dict(topics) for path, topics in targets.items()}
    return Struck(f"{broker.name} is to move {asked}: {told}", 0.0, lambda: None)


def shift_a_clock(stage: Stage, dice: random.Random) -> Struck:
    broker = dice.choice(list(stage.brokers.values()))
    seconds = dice.choice((-1, 1)) * dice.choice((2.0, 60.0, HOUR_S, 48 * HOUR_S))
    broker.shift_clock(seconds)
    return Struck(f"{broker.name}'s clock jumps by {seconds} s", dice.uniform(1, 8), lambda: broker.shift_clock(0))


def reassign(stage: Stage, dice: random.Random) -> Struck:
    targets = {index: dice.sample(IDS, 2) for index in range(PARTITIONS)}
    moves = [ReassignablePartition(partition_index=index, replicas=target) for index, target in targets.items()]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=MOVED, partitions=moves)])
    told: list[str] = []

    def ask() -> bool:
        try:
            answer = stage.ask(stage.controller(), request, 0)
        except (OSError, KeyError) as failure:
            told[:] = [repr(failure)]
            return False
        told[:] = [ErrorCode(each.error_code).name for topic in answer.responses for each in topic.partitions]
        return bool(told)

    with contextlib.suppress(TimeoutError):
        wait_until(ask, REASSIGN_S, "")
    return Struck(f"{MOVED} is to move to {targets}: {told}", 0.0, lambda: None)


def roll(stage: Stage, dice: random.Random) -> Struck:
    """A rolling restart, as an operator does it: the next broker when all is well again."""
    order = dice.sample(list(stage.brokers.values()), len(stage.brokers))
    for broker in order:
        broker.thaw()
        broker.terminate(ROLL_STOP_S)
        broker.spawn()
        wait_until(lambda: not stage.ills(), ROLL_START_S, lambda: f"rolled, and not well: {stage.ills()}")
    return Struck(f"rolled {[broker.name for broker in order]}", 0.0, lambda: None)


ALL: Final[tuple[Fault, ...]] = (
    kill_a_leader,
    kill_the_controller,
    kill_all,
    freeze_a_leader,
    freeze_the_controller,
    freeze_briefly,
    cut_two_brokers,
    cut_a_broker_off,
    cut_from_zookeeper,
    cut_from_one_zookeeper,
    kill_zookeepers_leader,
    kill_all_zookeepers,
    fill_a_disk,
    break_a_disk,
    shift_a_clock,
    reassign,
)
"""Those that may go on at the same time."""


def deal(dice: random.Random, faults: Sequence[Fault]) -> Iterator[Fault]:
    """All of them in random order, again and again, so that a short run has most of them."""
    while True:
        yield from dice.sample(faults, len(faults))


def _kill(broker: ChaosBroker, dice: random.Random) -> Struck:
    broker.kill()
    return Struck(f"kill -9 of {broker.name}", dice.uniform(0, 2) * SESSION_S, broker.spawn)


def _freeze(broker: ChaosBroker, duration_s: float) -> Struck:
    broker.freeze()
    return Struck(f"{broker.name} stands still", duration_s, broker.thaw)


def _cut(stage: Stage, dice: random.Random, ways: list[Way], duration_s: float) -> Struck:
    resets = dice.random() < 0.5
    stage.network.hold(ways)
    what = f"cut, {'then reset' if resets else 'late'}: {', '.join(f'{a} -> {b}' for a, b in ways)}"
    return Struck(what, duration_s, lambda: stage.network.release(ways, resets=resets))


def _ways(dice: random.Random, one: str, other: str) -> list[Way]:
    return _pair(dice.randrange(3), one, other)


def _pair(kind: int, one: str, other: str) -> list[Way]:
    """Both ways, or one of them."""
    return [[(one, other), (other, one)], [(one, other)], [(other, one)]][kind]


def _the_controller(stage: Stage, dice: random.Random) -> ChaosBroker:
    found = stage.controller()
    return stage.brokers.get(found) or dice.choice(list(stage.brokers.values()))


def _a_leader(stage: Stage, dice: random.Random) -> ChaosBroker:
    """Of some partition, as often of a coordinator's as of another; any broker where nobody tells."""
    partitions = stage.partitions()
    internal = dice.random() < 0.5
    leaders = [
        state.leader
        for (topic, _), state in sorted(partitions.items())
        if (topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)) is internal and state.leader in stage.brokers
    ]
    return stage.brokers[dice.choice(leaders or list(IDS))]
