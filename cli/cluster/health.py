"""A cluster at a glance: who is the controller, which partitions want attention, how leaders are spread."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.cluster.members import cluster_with_fenced
from kavka.cli.showing import BAD, GOOD, WARN, Report, Table, table_lines, tinted
from kavka.cli.topics.describing import Partition, all_topics

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ClusterDescription

_NAMED: Final = 10
"""So many partitions are named for people; programs get all."""


class BrokerLoad(NamedTuple):
    """How many partitions a broker leads, would lead by preference, and has replicas of."""

    broker: int
    leaders: int
    preferred_leaders: int
    replicas: int


class Health(NamedTuple):
    """What `kavka cluster health` shows. Partitions are named `topic-0`."""

    cluster: "ClusterDescription"
    topics: int
    partitions: int
    under_replicated: Sequence[str]
    under_min_isr: Sequence[str]
    at_min_isr: Sequence[str]
    offline: Sequence[str]
    not_preferred: Sequence[str]
    brokers: Sequence[BrokerLoad]

    @property
    def is_well(self) -> bool:
        """A controller, all brokers in service, and every partition led and with all its replicas in sync."""
        return not (self.cluster.controller is None or self.cluster.fenced or self.offline or self.under_replicated)

    @property
    def skew(self) -> float:
        """How many times as many partitions as on average the busiest broker leads."""
        leaders = [each.leaders for each in self.brokers]
        return round(max(leaders) * len(leaders) / sum(leaders), 2) if sum(leaders) else 1.0


def found(admin: "Admin") -> Health:
    """The cluster as it is. Raises KafkaError."""
    cluster = cluster_with_fenced(admin)
    topics = all_topics(admin)
    partitions = {
        f"{topic.description.name}-{each.info.partition}": each for topic in topics for each in topic.partitions
    }

    def among(kind: str) -> list[str]:
        return [name for name, each in partitions.items() if each.is_among(kind)]

    not_preferred = [
        name
        for name, each in partitions.items()
        if each.is_available and each.info.replicas and each.info.leader_id != each.info.replicas[0]
    ]
    loads = _loads(cluster, list(partitions.values()))
    return Health(
        cluster,
        len(topics),
        len(partitions),
        among("under-replicated"),
        among("under-min-isr"),
        among("at-min-isr"),
        among("unavailable"),
        not_preferred,
        loads,
    )


def _loads(cluster: "ClusterDescription", partitions: Sequence[Partition]) -> list[BrokerLoad]:
    leaders = Counter(each.info.leader_id for each in partitions)
    preferred = Counter(each.info.replicas[0] for each in partitions if each.info.replicas)
    replicas = Counter(broker for each in partitions for broker in each.info.replicas)
    ids = sorted({node.id for node in cluster.nodes} | set(replicas))
    return [BrokerLoad(each, leaders[each], preferred[each], replicas[each]) for each in ids]


def report(health: Health) -> Report:
    """For people and for programs."""
    controller = health.cluster.controller
    shown = {
        "cluster_id": health.cluster.cluster_id,
        "is_well": health.is_well,
        "controller": None if controller is None else controller.id,
        "fenced": sorted(health.cluster.fenced),
        "topics": health.topics,
        "partitions": health.partitions,
        "offline": list(health.offline),
        "under_replicated": list(health.under_replicated),
        "under_min_isr": list(health.under_min_isr),
        "at_min_isr": list(health.at_min_isr),
        "not_preferred": list(health.not_preferred),
        "leader_skew": health.skew,
        "brokers": [load._asdict() for load in health.brokers],
    }
    return Report("cluster-health", [shown], lambda: _lines(health))


def _lines(health: Health) -> Iterator[str]:
    controller = health.cluster.controller
    yield f"cluster           {health.cluster.cluster_id or '-'}"
    who = tinted("none", BAD) if controller is None else f"{controller.id} ({controller.host}:{controller.port})"
    yield f"controller        {who}"
    fenced = ",".join(map(str, sorted(health.cluster.fenced)))
    yield f"brokers           {len(health.cluster.nodes)}{tinted(f', fenced: {fenced}', BAD) if fenced else ''}"
    yield f"topics            {health.topics} with {health.partitions} partitions"
    for title, names, colour in (
        ("offline", health.offline, BAD),
        ("under min ISR", health.under_min_isr, BAD),
        ("under-replicated", health.under_replicated, WARN),
        ("not preferred", health.not_preferred, WARN),
    ):
        yield f"{title:<18}{_named(names, colour)}"
    yield f"leader skew       {health.skew:g}"
    yield from table_lines(Table("cluster-health", BrokerLoad._fields, health.brokers))
    yield tinted("all is well", GOOD) if health.is_well else tinted("something is wrong", BAD)


def _named(names: Sequence[str], colour: str) -> str:
    if not names:
        return "0"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return tinted(f"{len(names)}: {', '.join(names[:_NAMED])}{more}", colour)
