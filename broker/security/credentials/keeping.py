"""The broker's credentials, put together: when they are read, who hears of changes, what removes those that expired."""

import logging
from typing import TYPE_CHECKING, Final

from kavka.broker.security.credentials.registry_worker import RegistryWorker
from kavka.broker.security.credentials.scram_store import ScramStore
from kavka.cluster.registry.base import RegistryError

if TYPE_CHECKING:
    from kavka.broker.security.credentials.delegation_tokens import DelegationTokens
    from kavka.broker.services import Services
    from kavka.broker.waiting.scheduler import Scheduler

FIRST_EXPIRY_MS: Final = 30_000
LEAST_INTERVAL_MS: Final = 100

log = logging.getLogger(__name__)


class Credentials:
    """Makes what `services` has of credentials. `start` once the settings are known, `stop` before the registry's end.

    A broker without SASL and without tokens reads none of them, and loads none of the code for it.
    """

    def __init__(self, services: "Services") -> None:
        self._services = services
        services.registry_worker = RegistryWorker()
        self._users = services.scram_credentials = ScramStore(services.registry)

    def start(self, scheduler: "Scheduler") -> None:
        """Know who may log in, and hear of changes from here on. Raises RegistryError."""
        config = self._services.config
        self._read_users_if_asked_for()
        config.on_broker_change(self._settings_changed)
        tokens = self._services.tokens = self._tokens()
        if tokens is None:
            return
        tokens.start()

        def interval_ms() -> int:
            return max(config.current.delegation_token_expiry_check_interval_ms, LEAST_INTERVAL_MS)

        scheduler.every(
            "expire-delegation-tokens",
            interval_ms,
            lambda: self._remove_expired(tokens),
            first_ms=min(FIRST_EXPIRY_MS, interval_ms()),
        )

    def stop(self) -> None:
        """End what runs."""
        self._services.registry_worker.stop()

    def _tokens(self) -> "DelegationTokens | None":
        services = self._services
        current = services.config.current
        secret_key = current.delegation_token_secret_key or current.delegation_token_master_key
        if secret_key is None or not secret_key.value:
            return None
        from kavka.broker.security.credentials.delegation_tokens import DelegationTokens

        return DelegationTokens(
            services.registry,
            secret_key.value,
            lambda: services.config.current,
            services.now_ms,
            services.registry_worker,
        )

    def _settings_changed(self) -> None:
        """Another listener may ask for users now. What fails here, its first login tries again."""
        try:
            self._read_users_if_asked_for()
        except RegistryError as failure:
            log.warning("users are not known yet: %s", failure)

    def _read_users_if_asked_for(self) -> None:
        listeners = self._services.config.current.listeners
        if any(listener.security_protocol.startswith("SASL") for listener in listeners):
            self._users.load()

    def _remove_expired(self, tokens: "DelegationTokens") -> None:
        # There is none yet while the broker starts.
        controller = getattr(self._services, "controller", None)
        if controller is not None and controller.is_active:
            tokens.remove_expired()
