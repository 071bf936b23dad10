"""Kafka's config providers: settings that say where their values are (KIP-297, KIP-421, KIP-887).

    config.providers=file,secrets,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets
    config.providers.secrets.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.env.param.allowlist.pattern=KAFKA_.*
    ssl.keystore.password=${file:/run/secrets/broker.properties:keystore}

A reference to a provider that is not among `config.providers` stays the text that it is, as in Kafka. One whose value
is not there is refused, where Kafka takes the text itself for the value: nobody's password is `${file:...}`.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kavka.config.errors import ConfigError
from kavka.config.properties import parse_properties
from kavka.config.values import PROVIDERS, Referred, is_about_providers

MOST_BYTES: Final = 1 << 20
_CLASSES: Final = "org.apache.kafka.common.config.provider."
_BEGINS: Final = "${"
_ENDS: Final = "}"

Lookup = Callable[[str, str], str | None]
"""From path and key to the value; None where there is none. Raises ConfigError."""


class Providers:
    """The providers that some settings define.

    Threads: immutable; files are read when a reference is looked up.
    """

    def __init__(self, given: Mapping[str, str], environ: Mapping[str, str]) -> None:
        """Raises ConfigError for a class that is not served."""
        self._environ = environ
        names = [name.strip() for name in given.get(PROVIDERS, "").split(",")]
        self._lookups: dict[str, Lookup] = {name: self._lookup(name, given) for name in names if name}

    def resolve(self, given: Mapping[str, str]) -> dict[str, str]:
        """The same, with values for references, as `Referred`. Raises ConfigError, which shows no value."""
        if not self._lookups:
            return dict(given)
        return {name: self.resolve_one(name, text) for name, text in given.items()}

    def resolve_one(self, name: str, text: str) -> str:
        """As `resolve`, of one setting."""
        if "${" not in text or is_about_providers(name):
            return text

        """By hand, in one pass: an expression that Java has for it takes a text's length to the third power."""
        found: list[str] = []
        position = 0
        while (begin := text.find(_BEGINS, position)) >= 0 and (end := text.find(_ENDS, begin)) >= 0:
            reference = text[begin : end + 1]
            # ${provider:key} or ${provider:path:key}, whose key may have colons.
            provider, *place = text[begin + len(_BEGINS) : end].split(":", 2)
            lookup = self._lookups.get(provider) if place else None
            value = reference if lookup is None else _value(name, reference, lookup, place)
            found += (text[position:begin], value)
            position = end + 1
        resolved = "".join((*found, text[position:]))
        return text if resolved == text else Referred(resolved, text)

    def _lookup(self, name: str, given: Mapping[str, str]) -> Lookup:
        prefix = f"{PROVIDERS}.{name}"
        class_name = given.get(f"{prefix}.class", "").strip()
        allowed = given.get(f"{prefix}.param.allowed.paths", "")
        if class_name == f"{_CLASSES}FileConfigProvider":
            return _in_files(_allowed_paths(f"{prefix}.param.allowed.paths", allowed))
        if class_name == f"{_CLASSES}DirectoryConfigProvider":
            return _in_directories(_allowed_paths(f"{prefix}.param.allowed.paths", allowed))
        if class_name == f"{_CLASSES}EnvVarConfigProvider":
            pattern = f"{prefix}.param.allowlist.pattern"
            allows = _pattern(pattern, given[pattern]) if pattern in given else _always
            return _in_environment(self._environ, allows)
        known = ", ".join(f"{_CLASSES}{kind}ConfigProvider" for kind in ("File", "Directory", "EnvVar"))
        raise ConfigError(f"{prefix}.class", class_name, f"must be one of {known}")


def _always(_key: str) -> bool:
    return True


def _value(name: str, reference: str, lookup: Lookup, place: list[str]) -> str:
    *path, key = place
    try:
        value = lookup("".join(path), key)
    except ConfigError as error:
        raise ConfigError(name, reference, str(error)) from None
    if value is None:
        raise ConfigError(name, reference, "there is no such value")
    return value


def _pattern(name: str, text: str) -> Callable[[str], object]:
    # Not Python's: who may change settings from afar could have it search for ever.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        search: Callable[[str], object] = re2.compile(text, options).search
    except re2.error:
        raise ConfigError(name, text, "no regular expression, or one that needs backtracking") from None
    return search


def _allowed_paths(name: str, text: str) -> list[Path] | None:
    """None: all."""
    if not text.strip():
        return None
    paths = [_normal(each) for each in text.split(",")]
    for path in paths:
        if not (path.is_absolute() and path.exists()):
            raise ConfigError(name, text, f"path {path} is not valid: it should be absolute and exist")
    return paths


def _normal(text: str) -> Path:
    """Without `..` and links, so that nothing leads out of what is allowed."""
    path = Path(text.strip())
    return path.resolve() if path.is_absolute() else path


def _require_allowed(path: Path, allowed: list[Path] | None) -> None:
    if allowed is not None and not any(path.is_relative_to(each) for each in allowed):
        raise ConfigError(None, None, f"the path {path} is not allowed to be accessed")


def _in_files(allowed: list[Path] | None) -> Lookup:
    def look_up(path_text: str, key: str) -> str | None:
        path = _normal(path_text)
        _require_allowed(path, allowed)
        try:
            return parse_properties(_read(path)).get(key)
        except ValueError:
            # Its reason may show a line of the file.
            raise ConfigError(None, None, f"{path} is no file of properties") from None

    return look_up


def _in_directories(allowed: list[Path] | None) -> Lookup:
    def look_up(path_text: str, key: str) -> str | None:
        directory = _normal(path_text)
        if not key or "/" in key or key in (".", ".."):
            raise ConfigError(None, None, "the key must be the name of a file")
        path = _normal(str(directory / key))
        _require_allowed(directory, allowed)
        # Kubernetes' files of secrets are links to elsewhere in their directory.
        _require_allowed(path, allowed)
        if not path.is_file():
            return None
        try:
            return _read(path).decode()
        except UnicodeDecodeError:
            raise ConfigError(None, None, f"{path} is no text in UTF-8") from None

    return look_up


def _in_environment(environ: Mapping[str, str], allows: Callable[[str], object]) -> Lookup:
    def look_up(path_text: str, key: str) -> str | None:
        if path_text:
            raise ConfigError(None, None, "a variable of the environment has no path")
        return environ.get(key) if allows(key) else None

    return look_up


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # A pipe would be waited for, a device has no end.
            raise ConfigError(None, None, f"cannot read {path}: it is no file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(None, None, f"cannot read {path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(None, None, f"{path} is larger than {MOST_BYTES} bytes")
    return data
