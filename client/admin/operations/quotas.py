"""DescribeClientQuotas and AlterClientQuotas."""

from collections.abc import Iterator, Mapping, Sequence

from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.types.quotas import ClientQuotaEntity, QuotaFilter, QuotaMatch
from kavka.protocol.messages import alter_client_quotas as altering
from kavka.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kavka.protocol.schema import Request

EXACT = 0


def describe_client_quotas(
    components: Mapping[str, QuotaFilter], strict: bool
) -> Operation[None, dict[ClientQuotaEntity, dict[str, float]]]:
    def request(_items: Sequence[None], _timeout_ms: int) -> Request:
        rows = [
            ComponentData(entity_type=kind, match_type=wanted, match=None)
            if isinstance(wanted, QuotaMatch)
            else ComponentData(entity_type=kind, match_type=EXACT, match=wanted)
            for kind, wanted in components.items()
        ]
        return DescribeClientQuotasRequest(components=rows, strict=strict)

    def read(answered: Answered[None]) -> Iterator[tuple[None, dict[ClientQuotaEntity, dict[str, float]]]]:
        check(answered.body.error_code, answered.body.error_message)
        yield (
            None,
            {
                _entity(entry.entity): {value.key: value.value for value in entry.values}
                for entry in answered.body.entries or ()
            },
        )

    return Operation("describing quotas", [None], request=request, read=read)


def _entity(rows: Sequence[altering.EntityData]) -> ClientQuotaEntity:
    return ClientQuotaEntity(frozenset((row.entity_type, row.entity_name) for row in rows))


def alter_client_quotas(
    changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], validate_only: bool
) -> Operation[ClientQuotaEntity, None]:
    def request(asked: Sequence[ClientQuotaEntity], _timeout_ms: int) -> Request:
        entries = [
            altering.AlterClientQuotasRequestEntryData(
                entity=[
                    altering.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(entity.names, key=lambda each: each[0])
                ],
                ops=[
                    altering.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in changes[entity].items()
                ],
            )
            for entity in asked
        ]
        return altering.AlterClientQuotasRequest(entries=entries, validate_only=validate_only)

    def read(answered: Answered[ClientQuotaEntity]) -> Iterator[tuple[ClientQuotaEntity, Outcome[None]]]:
        for row in answered.body.entries:
            yield _entity(row.entity), error_or(row, None)

    return Operation("changing quotas", changes, request=request, read=read)
