"""The administrator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kavka.config.checks import NOT_NEGATIVE, between
from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.loading import load
from kavka.config.errors import ConfigError
from kavka.config.setting import setting
from kavka.config.values import HIGH, INT, INT_MAX, LIST, LONG, MEDIUM


class AdminSettings(CommonSettings):
    """An administrator's settings, checked together. Immutable."""

    DOMAIN = "admin-client"

    given: Mapping[str, Any]
    """The settings as they were given, by Kafka's names."""
    bootstrap_controllers: tuple[str, ...] = setting(
        "bootstrap.controllers",
        LIST,
        (),
        "Controllers of KRaft to be asked directly (KIP-919): refused here, as brokers pass on what is theirs.",
        importance=HIGH,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        300_000,
        "A connection over which nothing was asked for so long is closed; negative: never.",
        importance=MEDIUM,
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms",
        INT,
        60_000,
        "How long calls may take that are given no time limit.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    retries: int = setting(
        "retries",
        INT,
        INT_MAX,
        "How often a request is sent again; the call's time limit ends it in any case.",
        check=between(0, INT_MAX),
    )


def admin_settings(given: Mapping[str, Any] | None = None, **keywords: Any) -> AdminSettings:
    """Settings by Kafka's names, and by keywords with underscores in place of dots; a keyword counts over a name.

    Values are text, as in properties files, or of the setting's own type. Raises ConfigError.
    """
    loaded = load(AdminSettings, given, keywords, "adminclient")
    values = loaded.values
    if values["bootstrap.servers"] and values["bootstrap.controllers"]:
        raise ConfigError(None, None, "You cannot specify both bootstrap.servers and bootstrap.controllers")
    if values["default.api.timeout.ms"] < values["request.timeout.ms"]:
        if "default.api.timeout.ms" in loaded.given:
            reason = "The specified value of default.api.timeout.ms must be no smaller than that of request.timeout.ms."
            raise ConfigError(None, None, reason)
        values["default.api.timeout.ms"] = values["request.timeout.ms"]
    return loaded.settings(AdminSettings)
