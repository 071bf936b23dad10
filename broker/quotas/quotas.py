"""The quotas of users and client ids, and what is used of them."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.quotas.account import NOTHING, Account
from kavka.broker.quotas.charging import AUTHENTICATION, Charge
from kavka.broker.quotas.keys import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    client_limits,
)
from kavka.broker.quotas.limits import LONGEST_NAME, UNLIMITED, Tags, counted_name, entity_of
from kavka.broker.quotas.meters import USUAL_WINDOW, Meter, Meters, MutationMeter
from kavka.broker.quotas.samples import Window
from kavka.broker.quotas.tally import NS_PER_MS

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig

MOST_ACCOUNTS: Final = 10_000
"""So many are remembered, but for very long names; they are found again at the price of a few look-ups."""
SWEEP_MS: Final = 10_000

log = logging.getLogger(__name__)


class Quotas:
    """All quotas but those of connections.

    `changed()` is called when others count from now on, so that nothing is taken for granted that was learnt before.
    Threads: any. `_lock` guards changes and the set of accounts; these are read without it.
    """

    def __init__(self, config: "BrokerConfig", now_ns: Callable[[], int], changed: Callable[[], None]) -> None:
        """`now_ns` is a clock that nobody sets back."""
        window = Window(config.quota_window_num, config.quota_window_size_seconds * 1000)
        controller = Window(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000)
        self._now_ns: Final = now_ns
        self.window: Final = window
        self.produce: Final = Meters(Meter, window)
        self.fetch: Final = Meters(Meter, window)
        self.request: Final = Meters(Meter, window)
        self.mutation: Final = Meters(MutationMeter, controller)
        self.exempt: Final = Meter(Tags("", ""), USUAL_WINDOW, UNLIMITED, self.now_ms())
        """Time that was spent on requests which have no quota: those of brokers."""
        self._changed: Final = changed
        self._lock: Final = threading.Lock()
        self._accounts: dict[tuple[str, str], Account] = {}
        self._swept_ms = self.now_ms()

    def now_ms(self) -> int:
        """What meters take for now."""
        return self._now_ns() // NS_PER_MS

    @property
    def is_limited(self) -> bool:
        """Whether there is any quota."""
        return any(meters.is_limited for meters in self._kinds().values())

    def apply(self, entity_path: str, stored: Mapping[str, str]) -> None:
        """Go by what is stored for `users/U`, `clients/C` or `users/U/clients/C`; nothing else of it is looked at.

        Raises ConfigError, and nothing has changed, for what is no number.
        """
        entity = entity_of(entity_path)
        if entity is None:
            return
        limits = client_limits(stored)
        with self._lock:
            news = [meters.update(entity, limits.get(key)) for key, meters in self._kinds().items()]
            if not any(news):
                return
            self._accounts = {}
        log.info("quotas changed entity=%s quotas=%s", entity_path, dict(limits))
        self._changed()

    def charge(self, api_key: int, principal: str, client_id: str | None) -> Charge | None:
        """What to count a request by; None where its client has no quota."""
        if api_key in AUTHENTICATION:
            return None
        account = self.account(principal, client_id or "")
        return None if account is NOTHING else Charge(account, self.exempt, self._now_ns)

    def account(self, principal: str, client_id: str) -> Account:
        """What is counted for a client: `principal` as `User:NAME`."""
        account = self._accounts.get((principal, client_id))
        if account is not None:
            return account
        now_ms = self.now_ms()
        user, client = counted_name(principal.partition(":")[2]), counted_name(client_id)
        with self._lock:
            if len(self._accounts) >= MOST_ACCOUNTS or now_ms - self._swept_ms > SWEEP_MS:
                self._sweep(now_ms)
            account = Account(
                self.produce.meter_of(user, client, now_ms),
                self.fetch.meter_of(user, client, now_ms),
                self.request.meter_of(user, client, now_ms),
                self.mutation.meter_of(user, client, now_ms),
            )
            account = NOTHING if account == NOTHING else account
            if len(principal) + len(client_id) <= 2 * LONGEST_NAME:
                self._accounts[principal, client_id] = account
        return account

    def _kinds(self) -> "dict[str, Meters[Meter] | Meters[MutationMeter]]":
        return {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.mutation,
        }

    def _sweep(self, now_ms: int) -> None:
        """Under `_lock`. Who keeps a meter that is forgotten must not go on with it beside a new one."""
        self._swept_ms = now_ms
        forgotten = [meters.sweep(now_ms) for meters in self._kinds().values()]
        if len(self._accounts) >= MOST_ACCOUNTS or any(forgotten):
            self._accounts = {}
        if any(forgotten):
            self._changed()
