"""Settings as they are: of topics, brokers, their loggers, groups, clients' metrics; and quotas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.cluster.members import check_brokers
from kavka.cli.configs.entities import QUOTA_TYPES, Entity
from kavka.cli.failing import Failure, tried
from kavka.cli.showing import Report, Value, table_lines
from kavka.cli.showing import Table as _Table
from kavka.client.admin.types.configs import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors
    from kavka.client.admin.types.quotas import QuotaFilter

TYPES: Final = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "broker-loggers": ConfigResourceType.BROKER_LOGGER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
    "groups": ConfigResourceType.GROUP,
}
_NAMES: Final = {kind: name for name, kind in TYPES.items()}
OWN: Final = {
    ConfigResourceType.TOPIC: {ConfigSource.DYNAMIC_TOPIC_CONFIG},
    ConfigResourceType.BROKER: {ConfigSource.DYNAMIC_BROKER_CONFIG},
    ConfigResourceType.BROKER_LOGGER: {ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG},
    ConfigResourceType.CLIENT_METRICS: {ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG},
    ConfigResourceType.GROUP: {ConfigSource.DYNAMIC_GROUP_CONFIG},
}
"""Where what was set for a resource itself comes from."""
COLUMNS: Final = (
    "entity_type",
    "entity_name",
    "name",
    "value",
    "source",
    "is_sensitive",
    "is_read_only",
    "synonyms",
)
_SHOWN: Final = ("name", "value", "source")
_COMPONENTS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHOWN_TYPES: Final = {component: kind for kind, component in _COMPONENTS.items()}
SECRET: Final = "(sensitive)"


def describe(admin: "Admin", entities: Sequence[Entity], *, show_all: bool) -> "tuple[Report, ItemErrors | None]":
    """What is set, or with `show_all` what holds; and what could not be described."""
    if entities[0].type in QUOTA_TYPES:
        rows = _quota_rows(admin, entities)
        return _report(rows), None
    (entity,) = entities
    check_entity(admin, entity)
    resources = [resource_of(entity)] if entity.name is not None else _all_resources(admin, entity.type)
    found, failure = tried(lambda: admin.describe_configs(resources, include_synonyms=True))
    rows = []
    for resource, entries in found.items():
        for entry in sorted(entries.values(), key=lambda entry: entry.name):
            if show_all or is_own(resource, entry):
                rows.append(_row(resource, entry))
    return _report(rows), failure


def check_entity(admin: "Admin", entity: Entity) -> None:
    """Raises Failure for a broker that there is not."""
    if entity.type in ("brokers", "broker-loggers") and entity.name:
        check_brokers(admin, [int(entity.name)])


def is_own(resource: ConfigResource, entry: ConfigEntry) -> bool:
    """Whether it was set for this resource, and not for another from which it has it."""
    if resource.type is ConfigResourceType.BROKER and not resource.name:
        return entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return resource.type is ConfigResourceType.BROKER_LOGGER or entry.source in OWN[resource.type]


def quota_key(entities: Iterable[Entity]) -> dict[str, str | None]:
    """Names by the protocol's types of entities; None is the default."""
    return {_COMPONENTS[kind]: name or None for kind, name in entities}


def resource_of(entity: Entity) -> ConfigResource:
    """The resource with this name."""
    return ConfigResource(TYPES[entity.type], entity.name or "")


def _all_resources(admin: "Admin", kind: str) -> list[ConfigResource]:
    """Everything of the type; of brokers also what holds for all of them."""
    if kind == "topics":
        return [ConfigResource.topic(name) for name in sorted(admin.list_topics(include_internal=True))]
    if kind in ("brokers", "broker-loggers"):
        ids = sorted(node.id for node in admin.describe_cluster().nodes)
        defaults = [ConfigResource.broker()] if kind == "brokers" else []
        return [*(ConfigResource(TYPES[kind], str(each)) for each in ids), *defaults]
    return sorted(admin.list_config_resources([TYPES[kind]]))


def _row(resource: ConfigResource, entry: ConfigEntry) -> list[Value]:
    synonyms = [{"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms]
    return [
        _NAMES[resource.type],
        resource.name,
        entry.name,
        entry.value,
        entry.source.name,
        entry.is_sensitive,
        entry.is_read_only,
        synonyms,
    ]


def _quota_rows(admin: "Admin", entities: Sequence[Entity]) -> list[list[Value]]:
    from kavka.client.admin.types.quotas import QuotaMatch

    filters: dict[str, QuotaFilter] = {}
    for kind, name in entities:
        filters[_COMPONENTS[kind]] = QuotaMatch.ANY if name is None else name or QuotaMatch.DEFAULT
    found = admin.describe_client_quotas(filters, strict=True)
    rows: list[list[Value]] = []
    for entity, quotas in found.items():
        names = sorted(entity.names)
        kinds = ",".join(_SHOWN_TYPES[kind] for kind, _ in names)
        text = ",".join(name or "" for _, name in names)
        rows += [
            [kinds, text, quota, f"{value:g}" if value % 1 else str(int(value)), "CLIENT_QUOTA", False, False, []]
            for quota, value in sorted(quotas.items())
        ]
    return sorted(rows, key=lambda row: [str(row[0]), str(row[1])])


def _report(rows: Sequence[Sequence[Value]]) -> Report:
    objects = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return Report("configs-describe", objects, lambda: _lines(rows))


def _lines(rows: Sequence[Sequence[Value]]) -> Iterable[str]:
    by_entity: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for row in rows:
        by_entity.setdefault((row[0], row[1]), []).append(dict(zip(COLUMNS, row, strict=True)))
    for (kind, name), settings in by_entity.items():
        texts = [[each["name"], SECRET if each["is_sensitive"] else each["value"], each["source"]] for each in settings]
        yield f"{kind} {table_name(name)}"
        yield from (f"  {line}" for line in table_lines(_Table("configs-describe", _SHOWN, texts)))


def table_name(name: str) -> str:
    """How an entity is called in text."""
    from kavka.cli.showing import escaped

    return escaped(name) if name else "<default>"


def quota_value(name: str, text: str) -> float:
    """A quota as a number. Raises Failure."""
    from kavka.cli.parsing import WRONG_USAGE

    try:
        return float(text)
    except ValueError:
        raise Failure(f"{name}={text}: a quota is a number", exit_code=WRONG_USAGE) from None
