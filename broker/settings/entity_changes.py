"""What is stored for what is neither a topic nor a broker (groups, users, client ids, addresses), and who goes by it.

Quotas are loaded with the first one that is set: without any the broker has none of their code, and no request meets
more than the look whether there are some.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.cluster.znodes.config import text_of_node

if TYPE_CHECKING:
    from kavka.broker.quotas.connections import AddressRates
    from kavka.broker.quotas.quotas import Quotas
    from kavka.broker.services import Services

QUOTAS: Final = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
CONNECTION_RATE: Final = "connection_creation_rate"

log = logging.getLogger(__name__)


class EntityChanges:
    """Hears of what was stored (`ConfigNotificationListener`), of all kinds but topics and brokers.

    Threads: `changed` and `unreadable` on one at a time; `_lock` guards `_rates` and who follows them.
    """

    LIMITED: Final = ("users", "clients", "ips")
    """The kinds that may have quotas."""

    def __init__(self, services: "Services", monotonic_ns: Callable[[], int]) -> None:
        self._services: Final = services
        self._now_ns: Final = monotonic_ns
        self._now_ms: Final = lambda: monotonic_ns() // 1_000_000
        self._quotas: Quotas | None = None
        self._lock: Final = threading.Lock()
        self._rates: AddressRates | None = None
        self._follow_rates: Callable[[AddressRates | None], None] | None = None

    def changed(self, entity_path: str, stored: Mapping[str, str]) -> None:
        """`stored` is what is set for `groups/G`, `users/U`, `users/U/clients/C`, `clients/C` or `ips/IP`.

        Raises ConfigError, and what held before goes on to, for what cannot be used.
        """
        kind, _, name = entity_path.partition("/")
        services = self._services
        if kind == "groups":
            services.config.group_changed(text_of_node(name), stored)
        elif kind == "users" and services.scram_credentials is not None:
            services.scram_credentials.node_changed(name, stored)
        if kind == "ips":
            self._address_changed(name, stored)
        elif self._quotas is not None or not QUOTAS.isdisjoint(stored):
            self._quotas_changed(entity_path, stored)

    def unreadable(self, entity_path: str) -> None:
        """What is stored there cannot be read. Quotas go on to hold; nobody logs in by what nobody can see.

        Kafka forgets both. Nothing but the log tells of it: who was let in stays so until he has to log in again.
        """
        kind, _, name = entity_path.partition("/")
        users = self._services.scram_credentials
        if kind == "users" and users is not None:
            users.node_changed(name, {})

    def rates_to(self, follow: "Callable[[AddressRates | None], None]") -> None:
        """Tell `follow` of the rates by address, now if there are any, and whenever they begin or end."""
        with self._lock:
            self._follow_rates = follow
            if self._rates is not None:
                follow(self._rates)

    def _quotas_changed(self, entity_path: str, stored: Mapping[str, str]) -> None:
        services = self._services
        if self._quotas is None:
            from kavka.broker.quotas.gauges import register_quota_gauges
            from kavka.broker.quotas.quotas import Quotas

            self._quotas = Quotas(services.config.current, self._now_ns, services.changed)
            register_quota_gauges(services.metrics, self._quotas)
        quotas = self._quotas
        quotas.apply(entity_path, stored)
        # Who finds none has nothing to count, and who was counted goes on with what was used before.
        in_force = quotas if quotas.is_limited else None
        if services.quotas is not in_force:
            services.quotas = in_force
            services.changed()

    def _address_changed(self, name: str, stored: Mapping[str, str]) -> None:
        with self._lock:
            if self._rates is None:
                if CONNECTION_RATE not in stored:
                    return
                from kavka.broker.quotas.connections import AddressRates

                config = self._services.config.current
                sample_ms = config.quota_window_size_seconds * 1000
                rates = AddressRates(config.quota_window_num, sample_ms, self._now_ms)
                rates.apply(name, stored)
                # Not before: nobody would be told of these if they could not be used.
                self._rates = rates
                if self._follow_rates is not None:
                    self._follow_rates(self._rates)
            else:
                self._rates.apply(name, stored)
