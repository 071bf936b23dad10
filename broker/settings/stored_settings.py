"""What stands between the dynamic settings as they are stored and the texts that count.

Passwords are stored encrypted (`password.encoder.secret`), and a text may be a reference to a config provider, which
the dynamic settings themselves define, as Kafka's tools store them, or the static ones. What a stored text is by
itself is worked out once: to decode a password takes milliseconds.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.settings.usable_settings import Unused
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import row_of
from kavka.config.providers import Providers, is_about_providers
from kavka.config.values import HIDDEN, Referred, Source

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
        try:
            # A definition among the static settings is the operator's own, and not to be widened from afar.
            providers = Providers(_definitions(stored, self._static), os.environ)
        except ConfigError as error:
            providers = Providers(_definitions({}, self._static), os.environ)
            unused.append(Unused(error.name or "config.providers", error))
        for name, text in stored.items():
            try:
                texts[name] = providers.resolve_one(name, self._decode(text) if is_password(name) else text)
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


def is_password(name: str) -> bool:
    """Whether a broker's setting is one, also behind a listener's prefix."""
    row = row_of(name, BrokerConfig.ALL_ROWS)
    return row is not None and row.is_sensitive


def without_values(error: ConfigError, texts: Iterable[str]) -> ConfigError:
    """The error without what config providers gave: a client may be told of it who may not read what they read."""
    message = str(error)
    for text in texts:
        if isinstance(text, Referred) and text and str(text) in message:
            message = message.replace(str(text), HIDDEN)
    return error if message == str(error) else ConfigError(None, None, message)


def _definitions(stored: Mapping[str, str], static: Mapping[str, str]) -> dict[str, str]:
    """Of the providers. Those of both are there; of one that both define the static settings' parts count."""
    names = [each.get("config.providers", "") for each in (static, stored)]
    own = [name.strip() for name in names[0].split(",") if name.strip()]
    protected = tuple(f"config.providers.{name}." for name in own)
    found = {
        name: text
        for name, text in stored.items()
        if is_about_providers(name) and not name.startswith(protected or "\n")
    }
    found |= {name: text for name, text in static.items() if is_about_providers(name)}
    return found | {"config.providers": ",".join(filter(None, names))}
