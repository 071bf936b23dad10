"""Where settings are given: command line over environment over file, as the apache/kafka container image has it.

An environment variable KAFKA_LOG_RETENTION_MS is log.retention.ms: lower case, `_` for a dot, `__` for an underscore,
`___` for a dash. KAFKA_CFG_LOG_RETENTION_MS, as Bitnami's image has it, is the same.
Variables of Kafka's scripts (KAFKA_HEAP_OPTS, KAFKA_LOG4J_ROOT_LOGLEVEL, ...) and of Kubernetes (KAFKA_PORT) do not
begin like any setting and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kavka.config.authorizer import AUTHORIZERS_OWN
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import PREFIX, base_row, split_prefix, without_effect
from kavka.config.promises import PROMISES
from kavka.config.properties import parse_properties
from kavka.config.values import PROVIDERS, is_about_providers

LEAST_LIKENESS: Final = 0.8
"""Of a mistyped name to the one it is taken for, from 0 to 1."""
_SHOWN_CHARACTERS: Final = 100
_ENVIRONMENT_PREFIXES: Final = ("KAFKA_CFG_", "KAFKA_")
"""Where both are given, the plain one counts."""
_SCRIPT_VARIABLES: Final = frozenset({"KAFKA_METRICS_OPTS", "KAFKA_LOG_OPTS", "KAFKA_ZOOKEEPER_OPTS"})
_NAMES: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_MAX_FILE_BYTES: Final = 1 << 20
_UNDERSCORES: Final = re.compile("_{1,3}")
_FOR_UNDERSCORES: Final = {1: ".", 2: "_", 3: "-"}


class Loaded(NamedTuple):
    """A start's settings. `unknown` and `without_effect` are names that were given, the latter with the reason."""

    config: BrokerConfig
    unknown: list[str]
    without_effect: list[tuple[str, str]]


def load_config(path: Path | str | None, overrides: Iterable[str], environ: Mapping[str, str]) -> Loaded:
    """Reads all sources. Raises ConfigError."""
    given = {**_from_file(path), **from_environment(environ), **_from_overrides(overrides)}
    rows = BrokerConfig.ALL_ROWS
    useless = [(name, reason) for name in sorted(given) if (reason := without_effect(name, rows)) is not None]
    unknown = [name for name in sorted(given) if not is_known(name)]
    if PROVIDERS in given:
        # Loaded where they are used.
        from kavka.config.providers import Providers

        given = Providers(given, environ).resolve(given)
    return Loaded(BrokerConfig(given), unknown, useless)


def is_known(name: str) -> bool:
    prefixed = split_prefix(name)
    rows = BrokerConfig.ALL_ROWS
    return (
        name in rows
        or name in AUTHORIZERS_OWN
        or is_about_providers(name)
        or (prefixed is not None and (prefixed[1] in PROMISES or base_row(prefixed[1], rows) is not None))
    )


def refuse_unknown(names: Iterable[str]) -> None:
    """For who gives settings by program, where a name that nobody knows is a mistake. Raises ConfigError."""
    for name in names:
        if not is_known(name):
            meant = nearest(name)
            hint = f"; did you mean {meant}?" if meant is not None else ""
            raise ConfigError(None, None, f"A broker has no setting {name!r}{hint}")


def nearest(name: str) -> str | None:
    """The known setting that an unknown one may have been meant to be."""
    from difflib import get_close_matches  # seldom needed

    prefixed = split_prefix(name)
    if prefixed is None:
        close = get_close_matches(name, [*BrokerConfig.ALL_ROWS, *AUTHORIZERS_OWN], 1, LEAST_LIKENESS)
        return close[0] if close else None
    known = [each for each in BrokerConfig.ALL_ROWS if base_row(each, BrokerConfig.ALL_ROWS) is not None]
    close = get_close_matches(prefixed[1], known, 1, LEAST_LIKENESS)
    return name.removesuffix(prefixed[1]) + close[0] if close else None


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings among the environment's variables, also those that only look like one (they are warned of)."""
    by_lower = {name.lower(): name for name in (*BrokerConfig.ALL_ROWS, *AUTHORIZERS_OWN, PROVIDERS)}
    first_words = {name.partition(".")[0] for name in by_lower if "." in name} | {PREFIX.partition(".")[0]}
    found: dict[str, str] = {}
    for prefix, variable, text in sorted(_prefixed(environ), key=lambda each: -len(each[0])):
        rest = variable[len(prefix) :].lower()
        name = _UNDERSCORES.sub(lambda run: _FOR_UNDERSCORES[len(run[0])], rest)
        if name in by_lower:
            found[by_lower[name]] = text
        elif "." in name and name.partition(".")[0] in first_words:
            found[name] = text
    return found


def _prefixed(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(prefix, variable, value) of those that may be settings."""
    for variable, text in environ.items():
        prefix = next((each for each in _ENVIRONMENT_PREFIXES if variable.startswith(each)), None)
        if prefix is not None and variable not in _SCRIPT_VARIABLES:
            yield prefix, variable, text


def _from_file(path: Path | str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise ConfigError(None, None, f"{path} is larger than {_MAX_FILE_BYTES} bytes: no file of settings")
        return parse_properties(data, _NAMES)
    except OSError as error:
        raise ConfigError(None, None, f"Cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(None, None, f"{path}, {error}") from None


def _from_overrides(overrides: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name.strip():
            shown = override[:_SHOWN_CHARACTERS]
            raise ConfigError(None, None, f"Invalid override {shown!r}: must be of the form name=value")
        given[name.strip()] = text
    return given
