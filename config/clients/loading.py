"""From what a client was made with, a mapping or keywords, to a settings object."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.secure import SecureSettings
from kavka.config.clients.secure_checks import check_secure
from kavka.config.clients.without_effect import why_without_effect
from kavka.config.errors import ConfigError
from kavka.config.setting import Setting, Settings
from kavka.config.values import HIDDEN, INT_MAX, LONG_MAX, Password, Type

S = TypeVar("S", bound=CommonSettings)
R = TypeVar("R", bound=Settings)

_LIMITS: Final = {Type.INT: INT_MAX, Type.LONG: LONG_MAX, Type.SHORT: 2**15 - 1}
_ON_THE_WIRE: Final = frozenset(
    {"client.id", "client.rack", "group.id", "group.instance.id", "group.remote.assignor", "transactional.id"}
)
_LONGEST_TEXT_BYTES: Final = 2**15 - 1
_OF_TEXT: Final = frozenset({"bootstrap.servers", "bootstrap.controllers"})
_numbers: Final = {name: count(1) for name in ("producer", "consumer", "adminclient")}
"""Of clients without an id, as in Kafka by kind. `next` is one step: any thread takes a number."""

log = logging.getLogger(__name__)


class Given(NamedTuple):
    """Values by Kafka's names, each checked by itself, and what was given of them."""

    kind: str
    values: dict[str, Any]
    given: dict[str, Any]

    def settings(self, settings_class: type[S], client_id: str | None = None) -> S:
        """The settings; a client without an id gets `client_id`, or one with the next number."""
        values = self.values
        if not values["client.id"]:
            values["client.id"] = client_id or f"{self.kind}-{next(_numbers[self.kind.partition('-')[0]])}"
        settings = _made(settings_class, values)
        settings.__dict__["given"] = MappingProxyType(self.given)
        return settings


def load(
    settings_class: type[CommonSettings], mapping: Mapping[str, Any] | None, keywords: Mapping[str, Any], kind: str
) -> Given:
    """Every row's value, with the checks that all clients have in common. None is the default.

    Unknown names are logged, and kept in `given`: a serializer may know them. Secrets are Passwords there. Raises
    ConfigError.
    """
    given = dict(mapping or {})
    given.update((name.replace("_", "."), value) for name, value in keywords.items())
    given = {name: value for name, value in given.items() if value is not None}
    rows = settings_class.ROWS
    values = {name: row.default for name, row in rows.items()}
    unknown = []
    for name, value in list(given.items()):
        row = rows.get(name)
        if row is not None:
            values[name] = _typed(row, value)
            if row.is_sensitive:
                given[name] = values[name]
        elif (reason := why_without_effect(name)) is not None:
            log.info("without effect setting=%s reason=%r", name, reason)
        else:
            unknown.append(name)
    if unknown:
        log.warning("unknown settings client=%s names=%s", kind, sorted(unknown))
    _check_common(values, given)
    return Given(kind, values, given)


def secure_settings(given: Mapping[str, Any]) -> SecureSettings:
    """How to make connections secure, for who is no producer, consumer or administrator. Raises ConfigError."""
    values = {name: row.default for name, row in SecureSettings.ROWS.items()}
    values.update(
        (name, _typed(SecureSettings.ROWS[name], value)) for name, value in given.items() if value is not None
    )
    check_secure(values)
    return _made(SecureSettings, values)


def _made(settings_class: type[R], values: Mapping[str, Any]) -> R:
    settings = settings_class.__new__(settings_class)
    for name, row in settings_class.ROWS.items():
        settings.__dict__[row.attribute] = values[name]
    return settings


def _check_common(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    check_secure(values)
    for name in _ON_THE_WIRE & values.keys():
        _check_length(name, values[name])
    values["metadata.recovery.strategy"] = values["metadata.recovery.strategy"].lower()
    if "reconnect.backoff.ms" in given and "reconnect.backoff.max.ms" not in given:
        # As in Kafka: who asks for a constant back-off gets it.
        values["reconnect.backoff.max.ms"] = values["reconnect.backoff.ms"]


def _check_length(name: str, value: str | None) -> None:
    """Requests have room for so much of them; what does not fit would end the client's thread."""
    try:
        is_short = value is None or len(value.encode()) <= _LONGEST_TEXT_BYTES
    except UnicodeEncodeError:
        is_short = False
    if not is_short:
        raise ConfigError(name, str(value)[:80], f"Expected text of at most {_LONGEST_TEXT_BYTES} bytes of UTF-8")


def _check_texts(row: Setting, values: tuple[Any, ...]) -> None:
    """Lists of classes take anything, others text alone."""
    if row.name in _OF_TEXT:
        for value in values:
            if not isinstance(value, str):
                raise ConfigError(row.name, value, "Expected a list of texts")


def _typed(row: Setting, value: Any) -> Any:
    """The checked value: parsed if it is text, else it has to be of the row's type. Raises ConfigError."""
    kind = row.type
    if isinstance(value, str):
        return row.parse(value)
    if kind is Type.LIST and isinstance(value, list | tuple):
        value = tuple(value)
    elif kind in _LIMITS and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _LIMITS[kind]:
            raise ConfigError(row.name, value, f"Not a number of type {kind.name}")
    elif kind is Type.STRING and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    elif kind is Type.DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        value = float(value)
    elif kind is Type.LIST:
        # A single class or object for a list of them.
        value = (value,)
    elif not (
        kind is Type.CLASS
        or (kind is Type.BOOLEAN and isinstance(value, bool))
        or (kind is Type.PASSWORD and isinstance(value, Password))
    ):
        shown = HIDDEN if row.is_sensitive else value
        raise ConfigError(row.name, shown, f"Expected a value of type {kind.name}, or its text")
    if kind is Type.LIST:
        _check_texts(row, value)
    if row.check is not None and (problem := row.check.problem(value)) is not None:
        raise ConfigError(row.name, *problem)
    return value
