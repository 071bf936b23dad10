"""A listener's SASL, ready for logins: its mechanisms, and how long sessions last."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.security.sasl.mechanisms import Identity, Mechanism
    from kavka.config.sasl_settings import ListenerSasl


class SaslListener:
    """Immutable; another one takes its place when settings change."""

    def __init__(
        self, settings: "ListenerSasl", mechanisms: "Mapping[str, Mechanism]", now_ms: Callable[[], int]
    ) -> None:
        self.mechanisms: Final = mechanisms
        self.max_receive_bytes: Final = settings.max_receive_bytes
        self.failure_delay_ms: Final = settings.failure_delay_ms
        self._max_reauth_ms = {each.name: each.max_reauth_ms for each in settings.mechanisms}
        self._now_ms = now_ms

    def of(self, mechanism: str, identity: "Identity") -> int | None:
        """The lifetime (ms) of a session that begins now: the shorter of the setting's and the credential's."""
        lifetimes_ms = []
        longest_ms = self._max_reauth_ms.get(mechanism, 0)
        if longest_ms > 0:
            lifetimes_ms.append(longest_ms)
        if identity.expiry_ms is not None:
            lifetimes_ms.append(max(0, identity.expiry_ms - self._now_ms()))
        return min(lifetimes_ms, default=None)
