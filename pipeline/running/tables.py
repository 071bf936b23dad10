"""Tables of a job file, read key by key: what is missing, unknown or of another kind is said with file and key."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

_DURATION: Final = re.compile(r"(\d{1,12})(ms|s|m|h|d)")
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class SettingError(ValueError):
    """A setting of a job that cannot be used: `key` as it stands in the file (`sinks[0].path`), and what is wrong."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        self.problem = problem
        super().__init__(f"{key}: {problem}" if key else problem)


class Table:
    """A table's settings. Whoever reads it takes each key once by its kind, and ends with `close`.

        table = Table(settings)
        lake = table.text("path")
        every = table.duration_ms("every", 60_000)
        table.close()

    Each method raises SettingError. Owned by one thread.
    """

    def __init__(self, settings: Mapping[str, object], name: str = "") -> None:
        """`name` stands before the keys in errors: `sinks[0]`."""
        self._settings = settings
        self._name = name
        self._known: dict[str, None] = {}

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; it has to be given where there is no default."""
        found = self._given(key, default)
        if not isinstance(found, str):
            raise self.wrong(key, f"{found!r} is not a text")
        if not found and found != default:
            raise self.wrong(key, "is empty")
        return found

    def optional_text(self, key: str) -> str | None:
        """A text, or None where it is not given."""
        return self.text(key) if self.has(key) else None

    def number(self, key: str, default: int | None = None, least: int = 0, most: int = 2**63 - 1) -> int:
        """A whole number within these."""
        found = self._given(key, default)
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.wrong(key, f"{found!r} is not a whole number")
        if not least <= found <= most:
            limit = f"from {least} on" if most >= 2**31 - 1 else f"from {least} to {most}"
            raise self.wrong(key, f"{found} is no number {limit}")
        return found

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        found = self._given(key, default)
        if not isinstance(found, bool):
            raise self.wrong(key, f"{found!r} is neither true nor false")
        return found

    def duration_ms(self, key: str, default_ms: int | None = None) -> int:
        """Milliseconds of `30s`, `15m`, `2h`."""
        if default_ms is not None and not self.has(key):
            return default_ms
        try:
            return duration_ms(self.text(key))
        except SettingError:
            raise
        except ValueError as error:
            raise self.wrong(key, str(error)) from None

    def choice(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """One of these texts."""
        found, allowed = self.text(key, default), list(choices)
        if found not in allowed:
            raise self.wrong(key, f"{found!r} is none of {', '.join(allowed)}{meant(found, allowed)}")
        return found

    def texts(self, key: str, default: Iterable[str] | None = None) -> list[str]:
        """A list of texts; one text alone is a list of it."""
        found = self._given(key, list(default) if default is not None else None)
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, list):
            raise self.wrong(key, f"{found!r} is not a list of texts")
        texts = [each for each in listed if isinstance(each, str) and each]
        if len(texts) != len(listed):
            raise self.wrong(key, f"{found!r} is not a list of texts")
        return texts

    def table(self, key: str) -> "Table":
        """A table in this one; an empty one where it is not given."""
        found = self._given(key, {})
        if not isinstance(found, dict):
            raise self.wrong(key, f"{found!r} is no table: write [{self._key(key)}]")
        return Table(found, self._key(key))

    def tables(self, key: str) -> "list[Table]":
        """An array of tables; none where it is not given."""
        found = self._given(key, [])
        if not isinstance(found, list):
            raise self.wrong(key, f"{found!r} is no list of tables: write [[{self._key(key)}]]")
        for number, each in enumerate(found):
            if not isinstance(each, dict):
                raise SettingError(f"{self._key(key)}[{number}]", f"{each!r} is no table: write [[{self._key(key)}]]")
        return [Table(each, f"{self._key(key)}[{number}]") for number, each in enumerate(found)]

    def has(self, key: str) -> bool:
        """Whether it is given."""
        self._known[key] = None
        return key in self._settings

    def flat(self) -> dict[str, str]:
        """All that was not taken, as texts: `a.b = 1` without quotes is a table in a table to TOML."""
        left = {key: value for key, value in self._settings.items() if key not in self._known}
        self._known.update(dict.fromkeys(left))
        return dict(self._flat(left, ""))

    def rest(self) -> dict[str, object]:
        """All that was not taken, as it is: for whoever reads it by a Table of his own."""
        left = {key: value for key, value in self._settings.items() if key not in self._known}
        self._known.update(dict.fromkeys(left))
        return left

    def close(self) -> None:
        """Nothing may be left that nobody knows."""
        for key in self._settings:
            if key not in self._known:
                raise self.wrong(key, f"is no setting here{meant(key, self._known) or _listed(self._known)}")

    def wrong(self, key: str, problem: str) -> SettingError:
        """What to raise about a key, in the end with the name of this table."""
        return SettingError(self._key(key), problem)

    def _key(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    def _given(self, key: str, default: object) -> object:
        self._known[key] = None
        found = self._settings.get(key, default)
        if found is None:
            raise self.wrong(key, "is missing")
        return found

    def _flat(self, table: Mapping[str, object], prefix: str) -> "Iterable[tuple[str, str]]":
        for key, value in table.items():
            if isinstance(value, dict):
                yield from self._flat(value, f"{prefix}{key}.")
            elif isinstance(value, bool):
                yield prefix + key, str(value).lower()
            elif isinstance(value, str | int | float):
                yield prefix + key, str(value)
            else:
                raise self.wrong(prefix + key, f"{value!r} is neither text nor number")


def meant(given: str, known: Iterable[str]) -> str:
    """`; did you mean topic?`, or nothing where none is near."""
    near = get_close_matches(given, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _listed(known: Iterable[str]) -> str:
    return f"; there are {', '.join(known)}" if known else ""


def duration_ms(text: str) -> int:
    """Milliseconds of `30s`. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration: give 500ms, 30s, 15m, 2h or 7d")
    return int(found[1]) * _UNITS_MS[found[2]]
