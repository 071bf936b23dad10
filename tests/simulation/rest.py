"""The end of a schedule: everything arrives, everybody is alive, and the cluster has to find its way back."""

from __future__ import annotations

from collections.abc import Callable

from kavka.cluster.znodes.topic import NO_LEADER
from tests.simulation.actions import agree, converse, fetch
from tests.simulation.broker import BACKOFF_MS, KEY
from tests.simulation.cluster import Cluster
from tests.simulation.invariants import Invariants, ViolationError

MOST_ROUNDS = 40


def come_to_rest(cluster: Cluster, invariants: Invariants) -> None:
    """First with the dead as they are, then with all. Raises ViolationError."""
    cluster.cuts.clear()
    for broker in cluster.alive:
        broker.channels.is_slow = False
        broker.channels.obey_own()
        invariants.check()
    cluster.interrupt_in = 0
    for ghost in cluster.ghosts:
        ghost()
        invariants.check()
    cluster.ghosts.clear()
    for flight in list(cluster.flights):
        if flight.answer is None:
            cluster.lose_fetch(flight)
        else:
            cluster.finish_fetch(flight)
        invariants.check()
    for broker in cluster.alive:
        broker.registry.reconnect()
        if broker.broker_id in cluster.handed_over:
            # It was about to stop.
            cluster.kill(broker)
    for session_id in cluster.tree.sessions - {broker.registry.session_id for broker in cluster.alive}:
        cluster.tree.end_session(session_id)
    _rounds(cluster, invariants, lambda: _trouble(cluster))
    for broker_id, broker in list(cluster.brokers.items()):
        if broker.is_alive and cluster.disks[broker_id].is_one_away:
            cluster.kill(broker)
        if not broker.is_alive:
            cluster.boot(broker_id)
    _rounds(cluster, invariants, lambda: _trouble(cluster) or _incomplete(cluster))


def _rounds(cluster: Cluster, invariants: Invariants, trouble: Callable[[], str | None]) -> None:
    found = None
    for number in range(MOST_ROUNDS):
        for index, broker in enumerate(cluster.alive):
            broker.notices.retry()
            broker.controller.of.resume()
            converse(cluster, index)
            invariants.check()
        agree(cluster, 0)
        for index in range(len(cluster.disks) * 2):
            fetch(cluster, index)
            invariants.check()
        cluster.now += BACKOFF_MS
        if number % 3 == 2:
            cluster.tick()
        found = trouble()
        if found is None:
            return
    raise ViolationError(f"no rest: {found}")


def _trouble(cluster: Cluster) -> str | None:
    """What is not as it should be, whoever is dead."""
    if not cluster.alive:
        return None
    if sum(broker.controller.epoch >= 0 for broker in cluster.alive) != 1:
        return "there is not one controller"
    state = cluster.state()
    if state is None:
        return "nobody leads" if any(each.broker_id in cluster.replicas() for each in cluster.alive) else None
    living = {broker.broker_id for broker in cluster.alive}
    if state.leader == NO_LEADER:
        may_lead = [each for each in state.isr if each in living and cluster.disks[each].may_lead(KEY)]
        return f"nobody leads, though {may_lead} could" if may_lead else None
    if state.leader not in living:
        return f"the dead {state.leader} leads"
    dead = [each for each in state.isr if each not in living]
    if dead:
        return f"the dead {dead} are in sync: {state}"
    for broker, partition in cluster.partitions():
        role = partition.role
        if broker.broker_id in cluster.replicas() and (role.leader_id, role.leader_epoch) != (
            state.leader,
            state.leader_epoch,
        ):
            return f"broker {broker.broker_id} follows {role}, not {state}"
    return None


def _incomplete(cluster: Cluster) -> str | None:
    """What is missing when all are alive."""
    state = cluster.state()
    if state is None or state.leader == NO_LEADER:
        return None
    if set(state.isr) != set(cluster.replicas()):
        failed = {broker.broker_id: sorted(broker.fetchers.failed) for broker in cluster.alive}
        return f"in sync are {state.isr} of {cluster.replicas()}, not followed {failed}"
    logs = [cluster.disks[each].logs[KEY] for each in state.isr]
    if any(log.entries != logs[0].entries for log in logs):
        return f"the logs differ: {[log.entries for log in logs]}"
    if any(log.high_watermark != log.log_end_offset for log in logs):
        return f"high watermarks {[log.high_watermark for log in logs]} of {logs[0].log_end_offset}"
    return None
