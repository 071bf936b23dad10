"""One row for each setting: name, type, default, check, documentation, whether it can change at run time.

A group of settings is a class whose attributes are declared with their types, so that mypy knows them:

    class LogSettings(Settings):
        log_retention_bytes: int = setting("log.retention.bytes", LONG, -1, "The size a log may reach.")

The class body only collects rows; an instance holds plain attributes in its dict, because the hot path reads them.
Validation, docs/settings.md and DescribeConfigs all come from the rows.
"""

from __future__ import annotations

from sys import intern
from typing import Any, ClassVar, NoReturn

from kavka.config.checks import Check
from kavka.config.defaults import KAVKA_DEFAULTS
from kavka.config.errors import ConfigError
from kavka.config.values import (
    HIDDEN,
    LOW,
    READ_ONLY,
    Importance,
    Referred,
    Scope,
    Type,
    ValueText,
    as_given,
    parse,
    render,
)


class Setting:
    """One row.

    `default` is a parsed value; `ignored` says why Kavka accepts the setting without using it, and is None for one
    that is followed; `internal` rows are left out of DescribeConfigs, as in Kafka; `synonyms` are the broker
    settings behind a topic's, the strongest first.
    """

    __slots__ = (
        "check",
        "default",
        "doc",
        "ignored",
        "importance",
        "internal",
        "name",
        "scope",
        "synonyms",
        "type",
    )

    def __init__(
        self,
        name: str,
        kind: Type,
        default: object,
        doc: str,
        *,
        check: Check | None = None,
        scope: Scope = READ_ONLY,
        importance: Importance = LOW,
        ignored: str | None = None,
        internal: bool = False,
        synonyms: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.type = kind
        difference = KAVKA_DEFAULTS.get(name)
        self.default = default if difference is None else difference[0]
        self.doc = doc
        self.check = check
        self.scope = scope
        self.importance = importance
        self.ignored = ignored
        self.internal = internal
        self.synonyms = synonyms

    @property
    def attribute(self) -> str:
        return attribute_name(self.name)

    @property
    def is_sensitive(self) -> bool:
        return self.type is Type.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        return self.scope is not READ_ONLY

    @property
    def default_text(self) -> str | None:
        """The default as Kafka writes it; None for null."""
        return render(self.type, self.default)

    def parse(self, text: ValueText, name: str | None = None) -> Any:
        """The checked value of `text`. `name` is the full name where the setting came with a listener's prefix.

        Raises ConfigError.
        """
        try:
            value = parse(self.type, text)
        except ValueError as error:
            raise ConfigError(name or self.name, self._shown(text), str(error)) from None
        if self.check is not None and (problem := self.check.problem(value)) is not None:
            if isinstance(text, Referred):
                problem = (text.reference, problem[1])
            raise ConfigError(name or self.name, *problem)
        return value

    def _shown(self, text: ValueText) -> ValueText:
        return HIDDEN if self.is_sensitive or text is None else as_given(text)


def setting(
    name: str,
    kind: Type,
    default: object,
    doc: str,
    *,
    check: Check | None = None,
    scope: Scope = READ_ONLY,
    importance: Importance = LOW,
    ignored: str | None = None,
    internal: bool = False,
    synonyms: tuple[str, ...] = (),
) -> Any:
    """Declares a row in a class body. Typed Any so that the attribute's own annotation counts."""
    return Setting(
        name,
        kind,
        default,
        doc,
        check=check,
        scope=scope,
        importance=importance,
        ignored=ignored,
        internal=internal,
        synonyms=synonyms,
    )


def attribute_name(name: str) -> str:
    """The name as an identifier; interned, because attributes are found faster by identity."""
    return intern(name.replace(".", "_"))


class Settings:
    """Base of groups of settings. Immutable: an instance's attributes are set once, by its constructor."""

    ROWS: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls) -> None:
        rows: dict[str, Setting] = {}
        for base in cls.__bases__:
            rows.update(getattr(base, "ROWS", {}))
        for attribute, row in list(vars(cls).items()):
            if isinstance(row, Setting):
                rows[row.name] = row
                delattr(cls, attribute)
        cls.ROWS = rows

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: make a new snapshot to change {name}")
