"""What stands between the dynamic settings as they are stored and the texts that count.

Passwords are stored encrypted (`password.encoder.secret`), and a text may be a reference to a config provider, which
the dynamic settings themselves define, as Kafka's tools store them, or the static ones. What a stored text is by
itself is worked out once: to decode a password takes milliseconds.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.settings.usable_settings import Unused
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import row_of
from kavka.config.values import PROVIDERS, Source, is_about_providers

if TYPE_CHECKING:
    from kavka.broker.settings.password_encoder import PasswordEncoder

MOST_REMEMBERED: Final = 1_000
NO_SECRET: Final = "dynamic passwords need password.encoder.secret, which this broker does not have"


class StoredSettings:
    """Reads what is stored, and makes it. Threads: any; `_decoded` is a memory of equal values."""

    def __init__(self, static: BrokerConfig) -> None:
        """Raises ConfigError for an encoder that cannot be had."""
        self._encoder: PasswordEncoder | None = None
        self._old_encoder: PasswordEncoder | None = None
        if static.password_encoder_secret is not None:
            from kavka.broker.settings.password_encoder import encoder_of, old_encoder_of

            self._encoder, self._old_encoder = encoder_of(static), old_encoder_of(static)
        self._static: Final = dict(static.layers)[Source.STATIC_BROKER]
        self._decoded: dict[str, str] = {}

    def read(self, stored: Mapping[str, str]) -> tuple[dict[str, str], list[Unused]]:
        """The texts that count, and what cannot be read, with the reason."""
        texts: dict[str, str] = {}
        unused: list[Unused] = []
        resolve = self._resolver(stored, unused)
        for name, text in stored.items():
            try:
                texts[name] = resolve(name, self._decode(text) if is_password(name) else text)
            except ConfigError as error:
                unused.append(Unused(name, ConfigError(None, None, f"{name}: {error}")))
        return texts, unused

    def protect(self, new: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
        """A change as it is to be stored: passwords that were given are encrypted, those that stay are left alone.

        Raises ConfigError without `password.encoder.secret`.
        """
        return {
            name: self._encode(name, text) if is_password(name) and stored.get(name) != text else text
            for name, text in new.items()
        }

    def renewed(self, stored: Mapping[str, str]) -> dict[str, str] | None:
        """What `password.encoder.old.secret` still reads, encrypted with the present secret; None if that is nothing.

        Also beside it: the old secret may stay in the settings for a while.
        """
        if self._old_encoder is None or self._encoder is None:
            return None
        renewed = {}
        for name, text in stored.items():
            if not is_password(name):
                continue
            try:
                self._encoder.decode(text)
            except ConfigError:
                try:
                    renewed[name] = self._encoder.encode(self._old_encoder.decode(text))
                except ConfigError:
                    # Neither secret's: whoever reads it next says so.
                    continue
        return {**stored, **renewed} if renewed else None

    def _resolver(self, stored: Mapping[str, str], unused: list[Unused]) -> Callable[[str, str], str]:
        """What gives a setting's text for the one that is stored."""
        definitions = _definitions(stored, self._static)
        if not definitions[PROVIDERS]:
            return _itself
        # Loaded where they are used.
        from kavka.config.providers import Providers

        try:
            return Providers(definitions, os.environ).resolve_one
        except ConfigError as error:
            unused.append(Unused(error.name or PROVIDERS, error))
            # What refers to those that cannot be had has no value: else the reference were somebody's password.
            lost = _names(stored) - _names(self._static)
            return partial(_without, lost, Providers(_definitions({}, self._static), os.environ).resolve_one)

    def _decode(self, text: str) -> str:
        if self._encoder is None:
            raise ConfigError(None, None, NO_SECRET)
        password = self._decoded.get(text)
        if password is None:
            password = self._encoder.decode(text)
            if len(self._decoded) >= MOST_REMEMBERED:
                self._decoded = {}
            self._decoded[text] = password
        return password

    def _encode(self, name: str, password: str) -> str:
        if self._encoder is None:
            raise ConfigError(None, None, f"{name} cannot be stored: {NO_SECRET}")
        return self._encoder.encode(password)


def _itself(_name: str, text: str) -> str:
    return text


def _without(lost: frozenset[str], resolve: Callable[[str, str], str], name: str, text: str) -> str:
    """What `resolve` gives. Raises ConfigError for a reference to a provider that is lost."""
    if not is_about_providers(name):
        for provider in lost:
            if f"${{{provider}:" in text:
                raise ConfigError(None, None, f"it refers to the config provider {provider}, which cannot be used")
    return resolve(name, text)


def is_password(name: str) -> bool:
    """Whether a broker's setting is one, also behind a listener's prefix."""
    row = row_of(name, BrokerConfig.ALL_ROWS)
    return row is not None and row.is_sensitive


def _definitions(stored: Mapping[str, str], static: Mapping[str, str]) -> dict[str, str]:
    """Of the providers. Those of both are there; of one that both define the static settings' parts count.

    A definition among the static settings is the operator's own, and not to be widened from afar.
    """
    names = [each.get(PROVIDERS, "") for each in (static, stored)]
    protected = tuple(f"config.providers.{name}." for name in _names(static))
    found = {
        name: text
        for name, text in stored.items()
        if is_about_providers(name) and not name.startswith(protected or "\n")
    }
    found |= {name: text for name, text in static.items() if is_about_providers(name)}
    return found | {PROVIDERS: ",".join(filter(None, names))}


def _names(given: Mapping[str, str]) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in given.get(PROVIDERS, "").split(","))))
