"""Quotas for people and for programs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kavka.cli.quotas.resolving import Resolved
from kavka.cli.showing import Report, Table, Value, table_lines
from kavka.client.admin import ClientQuotaEntity

DEFAULT: Final = "<default>"
KINDS: Final = ("user", "client-id", "ip")


def quota_report(found: Mapping[ClientQuotaEntity, Mapping[str, float]]) -> Report:
    """By entity: in JSON an entity's name is null where it stands for the default."""
    ordered = sorted(found.items(), key=lambda each: _sort_key(each[0]))
    objects = [{"entity": _names(entity), "quotas": dict(sorted(values.items()))} for entity, values in ordered]

    def lines() -> Iterable[str]:
        rows = [
            (*_cells(entity), name, _number(value))
            for entity, values in ordered
            for name, value in sorted(values.items())
        ]
        return table_lines(Table("quotas", ("user", "client_id", "ip", "quota", "value"), rows))

    return Report("quotas", objects, lines)


def resolved_report(found: Iterable[Resolved]) -> Report:
    """What holds, and whose quota it is."""
    rows = list(found)
    objects = [{"quota": each.name, "value": each.value, "entity": _names(each.entity)} for each in rows]

    def lines() -> Iterable[str]:
        cells = [(each.name, _number(each.value), *_cells(each.entity)) for each in rows]
        return table_lines(Table("quotas-resolve", ("quota", "value", "of_user", "of_client_id", "of_ip"), cells))

    return Report("quotas-resolve", objects, lines)


def _names(entity: ClientQuotaEntity) -> dict[str, Any]:
    names = dict(entity.names)
    return {kind: names[kind] for kind in (*KINDS, *sorted(names.keys() - {*KINDS})) if kind in names}


def _cells(entity: ClientQuotaEntity) -> list[Value]:
    names = dict(entity.names)
    return [(names[kind] if names[kind] is not None else DEFAULT) if kind in names else None for kind in KINDS]


def _sort_key(entity: ClientQuotaEntity) -> list[tuple[bool, str]]:
    return [(cell is not None, str(cell)) for cell in _cells(entity)]


def _number(value: float) -> float | int:
    """Rates of bytes have no fraction that anybody wants to see."""
    return int(value) if value.is_integer() else value
