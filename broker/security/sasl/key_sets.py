"""The sets of keys that a broker's listeners check tokens with: one for each address, however many ask for it."""

import ssl
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from kavka.broker.security.sasl.key_reading import KeySetError
from kavka.broker.security.sasl.key_set import KeySet, shown_url
from kavka.broker.security.sasl.oauthbearer import OAuthBearer
from kavka.broker.security.sasl.signed_tokens import SignedTokens
from kavka.client.security.web_trust import web_context
from kavka.config.errors import ConfigError
from kavka.config.values import HIDDEN

if TYPE_CHECKING:
    from kavka.broker.security.sasl.mechanisms import Mechanism
    from kavka.config.sasl_settings import TokenRules


class KeySets:
    """Threads: one at a time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_source: dict[tuple[object, ...], KeySet] = {}

    def tokens(self, rules: "TokenRules") -> SignedTokens:
        """What believes tokens by these rules. Raises ConfigError for a file without keys, and for stores
        by which no page could be trusted.

        A page may be down for a while: until it is up no token is believed, and the broker serves all else.
        """
        assert rules.jwks_url is not None
        times = (rules.refresh_ms, rules.retry_backoff_ms, rules.retry_backoff_max_ms)
        source = (rules.jwks_url, *times, rules.web_options)
        keys = self._by_source.get(source)
        if keys is None:
            keys = KeySet(rules.jwks_url, *times, web_context=_web_context(rules))
            if rules.jwks_url.startswith("file:"):
                try:
                    keys.fetch()
                except KeySetError as problem:
                    name = "sasl.oauthbearer.jwks.endpoint.url"
                    raise ConfigError(name, shown_url(rules.jwks_url), f"must have keys: {problem}") from problem
            keys.start()
            self._by_source[source] = keys
        return SignedTokens(rules, keys, self._now_ms)

    def keep_only(self, mechanisms: "Iterable[Mechanism]") -> None:
        """Stop fetching what none of these needs."""
        needed = {
            id(each.validator.keys)
            for each in mechanisms
            if isinstance(each, OAuthBearer) and isinstance(each.validator, SignedTokens)
        }
        for source, keys in list(self._by_source.items()):
            if id(keys) not in needed:
                del self._by_source[source]
                keys.stop()


def _web_context(rules: "TokenRules") -> Callable[[], ssl.SSLContext]:
    """Raises ConfigError."""
    made = partial(web_context, {name: option.value for name, option in rules.web_options})
    try:
        if rules.web_options:
            made()
    except ConfigError as problem:
        raise ConfigError("sasl.jaas.config", HIDDEN, f"its ssl.* options cannot be used: {problem}") from None
    return made
