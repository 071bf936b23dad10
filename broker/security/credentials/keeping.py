"""The broker's credentials, put together: when they are read, who hears of changes, what removes those that expired."""

import threading
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.security.credentials.delegation_tokens import DelegationTokens
    from kavka.broker.security.credentials.registry_worker import RegistryWorker
    from kavka.broker.security.credentials.scram_store import ScramStore
    from kavka.broker.services import Services
    from kavka.broker.waiting.scheduler import Scheduler

CREDENTIALS: Final = "kavka-credentials"
LOOKUPS: Final = "kavka-lookups"
"""Apart: a resolver may take tens of seconds, again and again, and logins and tokens wait for the other."""
FIRST_EXPIRY_MS: Final = 30_000
LEAST_INTERVAL_MS: Final = 100


class Credentials:
    """Makes what `services` has of credentials. `start` once the settings are known, `stop` before the registry's end.

    A broker without SASL and without tokens reads none of them, and loads none of the code for it.

    Threads: `worker` by any, whose first call `_lock` guards; the others by who starts, changes and stops the broker.
    """

    def __init__(self, services: "Services") -> None:
        self._services = services
        services.registry_worker = self.worker
        services.resolver_worker = partial(self.worker, LOOKUPS)
        self._lock = threading.Lock()
        self._workers: dict[str, RegistryWorker] = {}
        self._is_stopped = False

    def start(self, scheduler: "Scheduler") -> None:
        """Know who may log in, and hear of changes from here on. Raises RegistryError."""
        config = self._services.config
        self._read_users_if_asked_for()
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
        with self._lock:
            self._is_stopped, workers = True, list(self._workers.values())
        for worker in workers:
            worker.stop()

    def worker(self, name: str = CREDENTIALS) -> "RegistryWorker":
        """See `Services.registry_worker` and `Services.resolver_worker`. `name`: its thread's."""
        with self._lock:
            worker = self._workers.get(name)
            if worker is None:
                from kavka.broker.security.credentials.registry_worker import RegistryWorker

                worker = self._workers[name] = RegistryWorker(name)
                if self._is_stopped:
                    worker.stop()
            return worker

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
            self.worker(),
        )

    def _read_users_if_asked_for(self) -> None:
        listeners = self._services.config.current.listeners
        if any(listener.security_protocol.startswith("SASL") for listener in listeners):
            users_of(self._services).load()

    def _remove_expired(self, tokens: "DelegationTokens") -> None:
        # There is none yet while the broker starts.
        controller = getattr(self._services, "controller", None)
        if controller is not None and controller.is_active:
            tokens.remove_expired()


def users_of(services: "Services") -> "ScramStore":
    """The broker's users. They are to be loaded before anybody logs in.

    Threads: who starts the broker, and whoever changes its settings, one at a time.
    """
    users = services.scram_credentials
    if users is None:
        from kavka.broker.security.credentials.scram_store import ScramStore

        users = services.scram_credentials = ScramStore(services.registry)
    return users
