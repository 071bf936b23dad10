"""`Admin`: what administrators ask of a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from kavka.client.admin.areas.cluster import ClusterArea
from kavka.client.admin.areas.configs import ConfigsArea
from kavka.client.admin.areas.group_offsets import GroupOffsetsArea
from kavka.client.admin.areas.groups import GroupsArea
from kavka.client.admin.areas.partitions import PartitionsArea
from kavka.client.admin.areas.security import SecurityArea
from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.areas.transactions import TransactionsArea
from kavka.client.admin.machine import AdminMachine
from kavka.client.admin.ports import AdminPorts
from kavka.client.client_metrics import Metrics
from kavka.client.client_thread import ClientThread
from kavka.client.coordinators import Coordinators
from kavka.client.opening import open_network, retry_backoff
from kavka.config.clients.admin import AdminSettings, admin_settings
from kavka.config.errors import ConfigError


class Admin(
    TopicsArea,
    PartitionsArea,
    ConfigsArea,
    SecurityArea,
    GroupsArea,
    GroupOffsetsArea,
    TransactionsArea,
    ClusterArea,
):
    """An administrator's client: one method for each thing that brokers do for administrators.

        from kavka.client import Admin
        from kavka.client.admin import NewTopic

        with Admin(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=6)])
            for name, topic in admin.describe_topics(["orders"]).items():
                print(name, len(topic.partitions))

    Each method waits for its result, for `timeout_ms` at most, or `default.api.timeout.ms`. What fails and may be tried
    again is, until then: a controller, leader or coordinator that moved, a connection that ended, a quota. What must
    not be done twice, such as creating topics, raises DisconnectedError when it is not known whether it was done.

    A method on many items returns a dict of them. If some failed it raises `ItemErrors`, which has the errors and the
    results; a method that was given one item raises its own error. Items that a broker's answer leaves out have failed.

    Threads: any, several at once. All requests are made by one thread of the client's own, which begins with the first
    call and ends with `close`. After a fork the child's calls raise UsedAfterForkError.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **settings: Any) -> None:
        """Settings by Kafka's names in a mapping, or as keywords with underscores. Nothing is connected yet.

        Raises ConfigError for settings that cannot be used, OSError when no descriptors are left.
        """
        self._settings = admin_settings(config, **settings)
        if self._settings.bootstrap_controllers:
            reason = "Controllers are not asked directly: name brokers in bootstrap.servers, which pass requests on"
            raise ConfigError("bootstrap.controllers", ",".join(self._settings.bootstrap_controllers), reason)
        opened = open_network(self._settings, now_ms=_now_ms)
        self._metrics = opened.metrics
        backoff = retry_backoff(self._settings)
        coordinators = Coordinators(opened.network, opened.metadata, backoff)
        ports = AdminPorts(
            network=opened.network,
            metadata=opened.metadata,
            coordinators=coordinators,
            backoff=backoff,
            now_ms=_now_ms,
            request_timeout_ms=self._settings.request_timeout_ms,
            retries=self._settings.retries,
        )
        machine = AdminMachine(coordinators, opened.metadata.take_refusal)
        name = f"kavka-admin-{self._settings.client_id}"
        thread = ClientThread(name, opened.network, machine, metadata=opened.metadata, now_ms=_now_ms)
        super().__init__(thread, machine, ports, self._settings.default_api_timeout_ms)

    @property
    def settings(self) -> AdminSettings:
        """What the client goes by."""
        return self._settings

    @property
    def metrics(self) -> Metrics:
        """The client's metrics by Kafka's names, such as `request-total`."""
        return self._metrics

    def close(self, timeout_ms: float | None = None) -> None:
        """End the client. Calls of other threads go on for `timeout_ms` at most, by default for as long as they may.

        What is not done then raises ClientClosedError. Again is allowed.
        """
        self._thread.close(self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now_ms() -> float:
    return time.monotonic() * 1000
