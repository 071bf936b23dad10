"""Options' texts as values, and names that are no option's."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Final

from kavka.config.errors import ConfigError
from kavka.pipeline.source.errors import OptionError

KAFKA_PREFIX: Final = "kafka."
SHORT_FORMS: Final = ("bootstrap.servers", "client.id", "security.protocol", "isolation.level", "sasl.", "ssl.")
"""Clients' settings that may do without `kafka.`."""
_UNITS_MS: Final = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_UNITS_BYTES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def whole_number(options: Mapping[str, str], name: str, least: int = 1) -> int | None:
    """An option's number; None where it is not given. Raises OptionError."""
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        number = int(text.strip())
    except ValueError:
        number = least - 1
    if not least <= number < 2**63:
        raise OptionError(f"{name} is a whole number from {least} on, not {text[:80]}")
    return number


def truth(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Raises OptionError."""
    text = options.get(name.lower())
    if text is None:
        return default
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text[:80]}")
    return word == "true"


def duration_ms(options: Mapping[str, str], name: str, default_ms: int) -> int:
    """A time as Spark writes it: `15m`, `90 seconds`; a number alone is milliseconds. Raises OptionError."""
    text = options.get(name.lower())
    if text is None:
        return default_ms
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = (found.group(2) or "ms") if found else ""
    factor = _UNITS_MS.get(unit) or _UNITS_MS.get(unit.removesuffix("s"))
    if found is None or factor is None:
        raise OptionError(f"{name} is a time like 15m or 90s, not {text[:80]}")
    return int(found.group(1)) * factor


def size_bytes(options: Mapping[str, str], name: str) -> int | None:
    """Bytes as Spark writes them: `64m`, `1g`; a number alone is bytes. Raises OptionError."""
    text = options.get(name.lower())
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\s*([bkmg]?)b?", text.strip().lower())
    if found is None or int(found.group(1)) == 0:
        raise OptionError(f"{name} is a size like 64m or 1g, not {text[:80]}")
    return int(found.group(1)) * _UNITS_BYTES[found.group(2)]


def client_settings(options: Mapping[str, str], refused: Mapping[str, str]) -> dict[str, str]:
    """What of the options is the client's, by Kafka's names, which are in lower case as options are.

    `refused` has names that are not the user's to set, and what to do instead. Raises OptionError.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        if not is_clients(name):
            continue
        setting = name.removeprefix(KAFKA_PREFIX)
        if setting in refused:
            raise OptionError(f"{name} cannot be set: {refused[setting]}")
        if found.setdefault(setting, value) != value:
            raise OptionError(f"{setting} is given twice, as {found[setting]} and as {value}")
    return found


def client_error(error: ConfigError) -> OptionError:
    """What is wrong with a client's setting, by the name that its option has."""
    if error.name is None:
        return OptionError(str(error))
    return OptionError(f"{KAFKA_PREFIX}{error.name}: {str(error).replace(f' for configuration {error.name}:', ':')}")


def is_clients(name: str) -> bool:
    """Whether an option, in lower case, is a setting of Kafka's clients."""
    return name.startswith(KAFKA_PREFIX) or any(
        name == each or (each.endswith(".") and name.startswith(each)) for each in SHORT_FORMS
    )


def check_names(options: Mapping[str, str], known: Collection[str], what: str) -> None:
    """Refuse what is no option, with the one that may have been meant. Raises OptionError."""
    by_lower = {name.lower(): name for name in known}
    for name in options:
        if name not in by_lower and not is_clients(name):
            close = difflib.get_close_matches(name, by_lower, 1, 0.75)
            meant = f": did you mean {by_lower[close[0]]}?" if close else f"; options are {', '.join(sorted(known))}"
            raise OptionError(f"there is no option {name} for {what}{meant}")
