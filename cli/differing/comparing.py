"""Two of a kind side by side: what one has and the other has not, or has otherwise."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kavka.cli.cluster.members import check_brokers
from kavka.cli.showing import Value
from kavka.cli.topics.describing import Topic, all_topics, described
from kavka.client.admin.types.configs import ConfigEntry, ConfigResource, ConfigSource

if TYPE_CHECKING:
    from kavka.client import Admin

COLUMNS: Final = ("of", "name", "left", "right")
_OF_ONE_BROKER_ALONE: Final = frozenset(
    {"broker.id", "node.id", "advertised.listeners", "listeners", "log.dir", "log.dirs", "broker.rack"}
)
"""Brokers of one cluster differ in these by design."""
SENSITIVE: Final = "(sensitive)"


def topic_rows(left: "Admin", right: "Admin", names: tuple[str, str], *, with_defaults: bool) -> list[Sequence[Value]]:
    """How a topic differs from another, of the same cluster or of another one. Raises KafkaError."""
    found = []
    for admin, name in zip((left, right), names, strict=True):
        topics, failure = described(admin, [name])
        if failure is not None:
            raise failure
        found.append((_sizes(topics[0]), _all_configs(admin, name) if with_defaults else topics[0].configs))
    (left_sizes, left_configs), (right_sizes, right_configs) = found
    kind = f"topic {' | '.join(dict.fromkeys(names))}"
    return [*_different(kind, left_sizes, right_sizes), *_different(kind, left_configs, right_configs)]


def broker_rows(left: "Admin", right: "Admin", ids: tuple[int, int], *, show_all: bool) -> list[Sequence[Value]]:
    """How a broker's settings differ from another's; what is each broker's own only with `show_all`."""
    found = []
    for admin, broker_id in zip((left, right), ids, strict=True):
        check_brokers(admin, [broker_id])
        resource = ConfigResource.broker(broker_id)
        entries = admin.describe_configs([resource])[resource]
        found.append(
            {name: _text(entry) for name, entry in entries.items() if show_all or name not in _OF_ONE_BROKER_ALONE}
        )
    return _different(f"broker {ids[0]} | {ids[1]}", *found)


def cluster_rows(left: "Admin", right: "Admin", *, exclude_internal: bool) -> list[Sequence[Value]]:
    """How two clusters differ: topics, their sizes and settings, settings of all brokers, features."""
    by_name = [
        {topic.description.name: topic for topic in all_topics(admin, exclude_internal=exclude_internal)}
        for admin in (left, right)
    ]
    rows: list[Sequence[Value]] = []
    for name in sorted({*by_name[0], *by_name[1]}):
        pair = by_name[0].get(name), by_name[1].get(name)
        if pair[0] is None or pair[1] is None:
            rows.append((f"topic {name}", "exists", pair[0] is not None, pair[1] is not None))
            continue
        rows += _different(f"topic {name}", _sizes(pair[0]), _sizes(pair[1]))
        rows += _different(f"topic {name}", pair[0].configs, pair[1].configs)
    rows += _different("brokers", *(_cluster_wide(admin) for admin in (left, right)))
    rows += _different("feature", *(_features(admin) for admin in (left, right)))
    return rows


def _sizes(topic: Topic) -> dict[str, Value]:
    replicas = topic.description.partitions[0].replicas if topic.description.partitions else ()
    return {"partitions": len(topic.description.partitions), "replication factor": len(replicas)}


def _all_configs(admin: "Admin", name: str) -> dict[str, Value]:
    resource = ConfigResource.topic(name)
    return {entry.name: _text(entry) for entry in admin.describe_configs([resource])[resource].values()}


def _cluster_wide(admin: "Admin") -> dict[str, Value]:
    resource = ConfigResource.broker()
    entries = admin.describe_configs([resource])[resource].values()
    dynamic = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return {entry.name: _text(entry) for entry in entries if entry.source is dynamic}


def _features(admin: "Admin") -> dict[str, Value]:
    return {name: span.newest for name, span in admin.describe_features().finalized.items()}


def _text(entry: ConfigEntry) -> Value:
    return SENSITIVE if entry.is_sensitive else entry.value


def _different(kind: str, left: Mapping[str, Value], right: Mapping[str, Value]) -> list[Sequence[Value]]:
    """What is not set at all is None."""
    names = sorted({*left, *right})
    return [(kind, name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]
