"""What can happen, by name. A number decides the rest: whom it hits, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.simulation.broker import KEY, SimulatedBroker, SteppedFetcher
from tests.simulation.cluster import Cluster

T = TypeVar("T")
Action = Callable[[Cluster, int], None]
ACTIONS: dict[str, Action] = {}


def action(run: Action) -> Action:
    ACTIONS[run.__name__] = run
    return run


def pick(number: int, among: Sequence[T]) -> tuple[T | None, int]:
    """One of them, and what is left of the number."""
    return (among[number % len(among)], number // len(among)) if among else (None, number)


# Replication


@action
def produce(cluster: Cluster, number: int) -> None:
    leaders = [broker for broker, partition in cluster.partitions() if partition.role.is_leader]
    broker, rest = pick(number, leaders)
    if broker is not None:
        cluster.produce(broker, 1 if rest % 4 == 0 else -1)


@action
def fetch(cluster: Cluster, number: int) -> None:
    """A whole round, as it mostly is."""
    fetcher, rest = pick(number, _idle(cluster))
    if fetcher is None:
        return
    for _ in range(1 + rest % 3):
        flight = cluster.begin_fetch(*fetcher)
        if flight is None:
            return
        cluster.serve_fetch(flight, 0)
        if flight.answer is not None:
            cluster.finish_fetch(flight)


@action
def begin(cluster: Cluster, number: int) -> None:
    fetcher, _ = pick(number, _idle(cluster))
    if fetcher is not None:
        cluster.begin_fetch(*fetcher)


@action
def serve(cluster: Cluster, number: int) -> None:
    flight, fate = pick(number, [each for each in cluster.flights if each.answer is None])
    if flight is not None:
        cluster.serve_fetch(flight, fate % 8)


@action
def finish(cluster: Cluster, number: int) -> None:
    flight, fate = pick(number, [each for each in cluster.flights if each.answer is not None])
    if flight is not None:
        (cluster.lose_fetch if fate % 8 == 1 else cluster.finish_fetch)(flight)


@action
def flush(cluster: Cluster, number: int) -> None:
    disk, _ = pick(number, list(cluster.disks.values()))
    for log in disk.logs.values() if disk else ():
        log.flush()


@action
def checkpoint(cluster: Cluster, number: int) -> None:
    disk, _ = pick(number, list(cluster.disks.values()))
    for log in disk.logs.values() if disk else ():
        log.checkpoint_high_watermark()


# The controller


@action
def order(cluster: Cluster, number: int) -> None:
    ways = [(broker, target) for broker in cluster.alive for target, way in broker.channels.ways.items() if way.queue]
    way, fate = pick(number, ways)
    if way is not None:
        cluster.deliver_order(*way, fate % 8)


@action
def ghost(cluster: Cluster, number: int) -> None:
    if cluster.ghosts:
        cluster.ghosts.pop(number % len(cluster.ghosts))()


@action
def own_disk_hangs(cluster: Cluster, number: int) -> None:
    """A broker does nothing more of what its own controller orders, but for what it may have begun."""
    broker, _ = pick(number, [each for each in cluster.alive if not each.channels.is_slow])
    if broker is not None:
        broker.channels.is_slow = True


@action
def own_disk_answers(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, [each for each in cluster.alive if each.channels.is_slow])
    if broker is not None:
        broker.channels.is_slow = False
        broker.channels.obey_own()


@action
def watch(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, [each for each in cluster.alive if each.registry.watches.arriving])
    if broker is not None:
        broker.registry.watches.deliver()


@action
def control(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, [each for each in cluster.alive if each.controller.has_events])
    if broker is not None:
        broker.controller.step()


@action
def converse(cluster: Cluster, number: int) -> None:
    """All that waits for one broker's controller, and all that it has to say."""
    broker, _ = pick(number, cluster.alive)
    if broker is None:
        return
    while broker.registry.watches.arriving:
        broker.registry.watches.deliver()
    while broker.controller.has_events:
        broker.controller.step()
    for target, way in list(broker.channels.ways.items()):
        while (waiting := len(way.queue)) and broker.channels.ways.get(target) is way:
            cluster.deliver_order(broker, target, 0)
            if len(way.queue) == waiting:
                break
    while broker.controller.has_events:
        broker.controller.step()


@action
def ask(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, [each for each in cluster.alive if each.errand is not None])
    if broker is not None and broker.errand is not None:
        cluster.deliver_errand(broker.errand)


@action
def hear(cluster: Cluster, number: int) -> None:
    if cluster.answers:
        cluster.deliver_answer(number % len(cluster.answers))


@action
def agree(cluster: Cluster, number: int) -> None:
    """What leaders ask for is asked, decided and answered, as it mostly is."""
    for broker in cluster.alive:
        for job in _taken(broker.jobs):
            job()
        if broker.errand is not None:
            cluster.deliver_errand(broker.errand)
    for broker in cluster.alive:
        while broker.controller.has_events:
            broker.controller.step()
    while cluster.answers:
        cluster.deliver_answer(0)


@action
def job(cluster: Cluster, number: int) -> None:
    broker, rest = pick(number, [each for each in cluster.alive if each.jobs])
    if broker is not None:
        broker.jobs.pop(rest % len(broker.jobs))()


@action
def housekeeping(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        broker.notices.retry()
        broker.controller.of.resume()


# Operators


@action
def reassign(cluster: Cluster, number: int) -> None:
    broker, rest = pick(number, _controllers(cluster))
    if broker is not None:
        ids = list(cluster.disks)
        first = rest % len(ids)
        count = len(cluster.shape.replicas)
        cluster.reassign(broker, tuple(ids[(first + step) % len(ids)] for step in range(count)))


@action
def prefer(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, _controllers(cluster))
    if broker is not None:
        cluster.prefer(broker)


@action
def hand_over(cluster: Cluster, number: int) -> None:
    controller, rest = pick(number, _controllers(cluster))
    broker, _ = pick(rest, cluster.alive)
    if controller is not None and broker is not None:
        cluster.hand_over(controller, broker)


# Failures


@action
def kill(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        cluster.kill(broker)


@action
def power_cut(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        cluster.kill(broker, is_power_cut=True)


@action
def replace_disk(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        cluster.kill(broker, loses_disk=True)


@action
def replace_and_restart(cluster: Cluster, number: int) -> None:
    """Whose disk was replaced is started once or more, and stops each time before it has all again."""
    broker, rest = pick(number, cluster.alive)
    if broker is None:
        return
    cluster.kill(broker, loses_disk=True)
    starts, rest = rest % 3 + 1, rest // 3
    for _ in range(starts):
        cluster.boot(broker.broker_id)
        broker = cluster.brokers[broker.broker_id]
        if not broker.is_alive:
            return
        heard, rest = rest % 4, rest // 4
        for index in range(len(cluster.alive) if heard else 0):
            converse(cluster, index)
        for fetcher in [fetcher for asker, fetcher in _idle(cluster) if asker is broker and heard > 1]:
            flight = cluster.begin_fetch(broker, fetcher)
            if flight is not None:
                # Cut short by its size, or with the first records.
                cluster.serve_fetch(flight, 4 if heard == 3 else 0)
                if flight.answer is not None:
                    cluster.finish_fetch(flight)
        if not broker.is_alive or rest % 8 == 0:
            return
        cluster.kill(broker)


@action
def kill_in_doubt(cluster: Cluster, number: int) -> None:
    """Somebody that may lack records."""
    hosted = [(broker, cluster.disks[broker.broker_id].logs.get(KEY)) for broker in cluster.alive]
    broker, rest = pick(number, [broker for broker, log in hosted if log is not None and log.is_unproven])
    if broker is not None:
        cluster.kill(broker, is_power_cut=rest % 8 == 1)


@action
def boot(cluster: Cluster, number: int) -> None:
    broker_id, _ = pick(number, [each for each in cluster.disks if not cluster.brokers[each].is_alive])
    if broker_id is not None:
        cluster.boot(broker_id)


@action
def boot_without(cluster: Cluster, number: int) -> None:
    """The directory with its log is away."""
    broker_id, _ = pick(number, [each for each in cluster.disks if not cluster.brokers[each].is_alive])
    if broker_id is not None:
        cluster.boot(broker_id, without_directory=True)


@action
def restart_without(cluster: Cluster, number: int) -> None:
    """A broker is back before anybody hears that it was gone, the directory with its log is not."""
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        cluster.kill(broker)
        cluster.boot(broker.broker_id, without_directory=True)


@action
def directory_fails(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, cluster.alive)
    if broker is not None:
        cluster.lose_directory(broker)


@action
def expire(cluster: Cluster, number: int) -> None:
    """A session ends, of a dead broker or of one that does not know yet."""
    session_id, _ = pick(number, sorted(cluster.tree.sessions))
    if session_id is not None:
        cluster.tree.end_session(session_id)


@action
def reconnect(cluster: Cluster, number: int) -> None:
    broker, _ = pick(number, [each for each in cluster.alive if each.registry.is_expired])
    if broker is not None:
        broker.registry.reconnect()


@action
def cut(cluster: Cluster, number: int) -> None:
    source, rest = pick(number, list(cluster.disks))
    target, _ = pick(rest, list(cluster.disks))
    if source is not None and target is not None and source != target:
        cluster.cuts.add((source, target))


@action
def heal(cluster: Cluster, number: int) -> None:
    cluster.cuts.clear()


@action
def tick(cluster: Cluster, number: int) -> None:
    cluster.tick()


@action
def overtake(cluster: Cluster, number: int) -> None:
    """In the middle of what a controller does next its session ends, and another one is elected."""
    calls, rest = number % 8 + 1, number // 8
    cluster.interrupt_in = calls

    def happen(overtaken: int) -> None:
        expire(cluster, rest)
        for broker in cluster.alive:
            if broker.broker_id != overtaken and not broker.registry.is_expired and broker.controller.epoch < 0:
                converse(cluster, cluster.alive.index(broker))
                break

    cluster.interrupt = happen


def _idle(cluster: Cluster) -> list[tuple[SimulatedBroker, SteppedFetcher]]:
    busy = {flight.fetcher for flight in cluster.flights}
    return [
        (broker, fetcher)
        for broker in cluster.alive
        for fetcher in broker.fetchers.fetchers
        if isinstance(fetcher, SteppedFetcher) and fetcher not in busy
    ]


def _controllers(cluster: Cluster) -> list[SimulatedBroker]:
    return [broker for broker in cluster.alive if broker.controller.epoch >= 0]


def _taken(jobs: list[Callable[[], None]]) -> list[Callable[[], None]]:
    taken = list(jobs)
    jobs.clear()
    return taken
