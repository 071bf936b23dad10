"""Quotas over the wire, set and shown as Kafka's tools do, at our broker and at Kafka's."""

from collections.abc import Mapping
from typing import Any

from kavka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from kavka.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.support.wire import RawClient

Names = Mapping[str, str | None]
"""Of an entity: by type, None for the type's default."""


class QuotaClient(RawClient):
    """A client that changes quotas, too."""

    def change(
        self, names: Names, values: Mapping[str, float | None], *, validate_only: bool = False, version: int = 1
    ) -> tuple[int, str | None]:
        """Set quotas, or with None take them away: what became of it."""
        entry = AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
            ops=[
                OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in values.items()
            ],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
        (answer,) = self.ask(request, version).entries
        return answer.error_code, answer.error_message

    def limit(self, **values: float | None) -> None:
        """Set quotas of this client's id, all users'."""
        assert self.change({"client-id": self.client_id}, values)[0] == 0

    def shown(
        self, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
    ) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
        """What a filter finds; each component has a type, a kind of match and a name."""
        answer = self.filtered(*components, strict=strict, version=version)
        assert answer.error_code == 0, answer.error_message
        return {
            frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries
        }

    def filtered(self, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
        """The whole answer."""
        rows = [ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components]
        return self.ask(DescribeClientQuotasRequest(components=rows, strict=strict), version)
