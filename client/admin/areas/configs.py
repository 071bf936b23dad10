"""Settings of topics, brokers, groups and clients' metrics; quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of
from kavka.client.admin.areas.later import Later

if TYPE_CHECKING:
    from kavka.client.admin.operations import configs as operations
    from kavka.client.admin.operations import quotas
    from kavka.client.admin.types.configs import AlterConfigOp, ConfigEntry, ConfigResource, ConfigResourceType
    from kavka.client.admin.types.quotas import ClientQuotaEntity, QuotaFilter
else:
    operations = Later("kavka.client.admin.operations.configs")
    quotas = Later("kavka.client.admin.operations.quotas")


class ConfigsArea(Area):
    """Threads: any."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Settings by resource and name: all, or those of `names`.

            topic = ConfigResource.topic("orders")
            admin.describe_configs([topic])[topic]["retention.ms"].value

        A broker's own are asked of that broker, all others of any. Raises ValueError for a broker whose id is no
        number, UnknownTopicOrPartitionError, ...
        """
        wanted = None if names is None else each_of(names)
        operation = operations.describe_configs(each_of(resources), wanted, include_synonyms, include_documentation)
        return self._run(operation, self._deadline(timeout_ms))

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, None]:
        """Set, delete, append to or subtract from single settings (KIP-339); what is not named stays.

            admin.incremental_alter_configs({ConfigResource.topic("orders"): [AlterConfigOp("retention.ms", "60000")]})

        Raises InvalidConfigurationError, PolicyViolationError, UnknownTopicOrPartitionError, ...; DisconnectedError
        when it is not known whether something was appended; ValueError for a broker whose id is no number.
        """
        wanted = {resource: each_of(each) for resource, each in changes.items()}
        operation = operations.incremental_alter_configs(wanted, validate_only)
        return self._run(operation, self._deadline(timeout_ms))

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, None]:
        """Replace all settings of resources: what is not named goes back to its default (AlterConfigs).

        For brokers before 2.3 alone; others do what is meant with `incremental_alter_configs`, and without a race.
        """
        return self._run(operations.alter_configs(configs, validate_only), self._deadline(timeout_ms))

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout_ms: float | None = None
    ) -> list[ConfigResource]:
        """What has, or may have, settings, of these types or of all (KIP-1142)."""
        return self._one(operations.list_config_resources(each_of(types)), self._deadline(timeout_ms))

    def list_client_metrics_resources(self, *, timeout_ms: float | None = None) -> list[str]:
        """The names of the subscriptions to clients' metrics (KIP-714); their settings are of CLIENT_METRICS."""
        from kavka.client.admin.types.configs import ConfigResourceType

        resources = self.list_config_resources([ConfigResourceType.CLIENT_METRICS], timeout_ms=timeout_ms)
        return [resource.name for resource in resources]

    def describe_client_quotas(
        self,
        components: Mapping[str, QuotaFilter] | None = None,
        *,
        strict: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas of the entities that have all these components, of all by default (KIP-546).

            admin.describe_client_quotas({"user": "alice", "client-id": QuotaMatch.ANY})

        `strict`: of those alone that have no other component.
        """
        return self._one(quotas.describe_client_quotas(components or {}, strict), self._deadline(timeout_ms))

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ClientQuotaEntity, None]:
        """Set quotas, or with None remove them.

        admin.alter_client_quotas({ClientQuotaEntity.of(user="alice"): {"consumer_byte_rate": 1_000_000}})
        """
        return self._run(quotas.alter_client_quotas(changes, validate_only), self._deadline(timeout_ms))
