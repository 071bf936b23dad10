"""Brokers come, go, come back under a new epoch, stop in an orderly way, or lose a directory."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import Watch
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.notifications import IsrChange, LogDirEvent
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)


def on_broker_change(term: Term, watch: Watch) -> None:
    """Compare the registered brokers with those known, and act on the difference."""
    context = term.context
    before = context.brokers
    now = term.store.live_brokers(watch, before)
    bounced = {broker for broker in now if broker in before and now[broker].epoch != before[broker].epoch}
    dead = {broker for broker in before if broker not in now} | bounced
    new = {broker for broker in now if broker not in before} | bounced
    updated = {broker for broker in now if broker not in new and now[broker] != before[broker]}
    if dead:
        log.info("brokers gone: %s", sorted(dead))
        context.brokers = {broker: info for broker, info in before.items() if broker not in dead}
        term.channels.update_brokers(context.brokers.values())
        _on_failure(term, dead)
    if new or updated:
        log.info("brokers come: %s, changed: %s", sorted(new), sorted(updated))
        context.brokers = now
        term.channels.update_brokers(now.values())
        _on_arrival(term, new)
    term.settle()


def on_log_dir_events(term: Term, watch: Watch) -> None:
    """Ask brokers whose disks changed to say which replicas they have: the answers tell what is lost, or back.

    Kafka's brokers send the notice when a directory failed. Kavka's send it too when they have made up for what a disk
    refused for a while, so replicas that were given up, and deletions that are held back, are asked about as well.
    """
    brokers = set()
    for name, data in term.store.take_notices(LogDirEvent.PARENT, watch).items():
        try:
            brokers.add(LogDirEvent.decode(name, data))
        except ZnodeError as error:
            log.error("ignored: %s", error)
    context = term.context
    asked = context.replicas_on(brokers & context.brokers.keys())
    kept = [each for each in asked if each.topic not in context.deleting]
    term.replicas.to_online(each for each in kept if each not in context.offline_replicas)
    for replica in kept:
        # It is online when the broker says so, and not before.
        if replica in context.offline_replicas and replica.topic_partition in context.leaders:
            term.batch.lead_and_follow([replica.broker_id], replica.topic_partition)
    term.deletions.retry({each.topic for each in asked if each.topic in context.deleting})
    term.settle()


def on_isr_changes(term: Term, watch: Watch) -> None:
    """Leaders of old brokers wrote the ISR themselves: read it, and publish it."""
    changed: dict[TopicPartition, None] = {}
    for name, data in term.store.take_notices(IsrChange.PARENT, watch).items():
        try:
            changed.update(dict.fromkeys(IsrChange.decode(name, data)))
        except ZnodeError as error:
            log.error("ignored: %s", error)
    known = [partition for partition in changed if partition in term.context.leaders]
    term.context.leaders.update(term.store.states(known))
    if known:
        term.batch.publish(known)
    term.reassignments.isr_changed(known)
    term.reassignments.finish()
    term.settle()


def shut_down(term: Term, broker: int, broker_epoch: int) -> list[TopicPartition]:
    """Move leadership away from a broker that will stop. Gives the partitions that it still leads, alone of several.

    Raises BrokerError(BROKER_NOT_AVAILABLE) for a broker that is not alive, and STALE_BROKER_EPOCH for an earlier
    incarnation of one (KIP-380).
    """
    context = term.context
    info = context.brokers.get(broker)
    if info is None:
        raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker} is not alive.")
    if broker_epoch not in (-1, info.epoch):
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker} has epoch {info.epoch}, not {broker_epoch}.")
    context.stopping.add(broker)
    replicas = [
        each
        for each in context.replicas_on([broker])
        if len(context.replicas_of(each.topic_partition)) > 1 and each.topic not in context.deleting
    ]
    led = [each.topic_partition for each in replicas if _leads(term, each.topic_partition, broker)]
    followed = [each for each in replicas if not _leads(term, each.topic_partition, broker)]
    # What it hands over it follows until it is gone: it can still say to clients that it leads no more.
    term.partitions.to_online(led, term.partitions.for_shutdown)
    term.replicas.to_offline(each for each in followed if each not in context.offline_replicas)
    term.settle()
    return [partition for partition in led if _leads(term, partition, broker)]


def _on_failure(term: Term, brokers: Iterable[int]) -> None:
    context = term.context
    dead = set(brokers)
    context.stopping -= dead
    replicas = context.replicas_on(dead)
    context.offline_replicas = {each for each in context.offline_replicas if each.broker_id not in dead}
    term.lose_replicas(replicas)
    # Everyone forgets the brokers, even if they held nothing.
    term.batch.publish(())
    term.batch.flush(term.store.epoch)


def _on_arrival(term: Term, brokers: Iterable[int]) -> None:
    context = term.context
    new = set(brokers)
    # Before any order, as nobody follows a leader that it has not heard of: who lives, and who is new hears of all.
    term.batch.publish((), context.brokers.keys() - new)
    term.batch.flush(term.store.epoch)
    term.publish_all(new)
    replicas = context.replicas_on(new)
    term.replicas.to_online(each for each in replicas if each.topic not in context.deleting)
    term.partitions.retry_leaderless()
    term.reassignments.resume(new)
    term.deletions.retry({each.topic for each in replicas if each.topic in context.deleting})


def _leads(term: Term, partition: TopicPartition, broker: int) -> bool:
    state: PartitionState | None = term.context.leaders.get(partition)
    return state is not None and state.leader == broker
