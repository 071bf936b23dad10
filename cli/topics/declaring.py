"""Topics as a file declares them, in TOML."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kavka.cli.failing import Failure, Failures

_KEYS: Final = ("partitions", "replication-factor", "configs")
_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_MOST: Final = {"partitions": 2**31 - 1, "replication-factor": 2**15 - 1}


class DeclaredTopic(NamedTuple):
    """What a topic is to be. None: as it is, or as the broker makes it."""

    name: str
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, str]


def declared_topics(path: Path) -> list[DeclaredTopic]:
    """Raises Failure for a file that cannot be read or is no TOML, Failures for all that is wrong in it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{path}: {error}") from error
    tables = document.get("topics")
    others = sorted(document.keys() - {"topics"})
    if not isinstance(tables, dict) or not tables or others:
        found = f"{others[0]} is unknown" if others else "it declares no topic"
        raise Failure(f"{path}: {found}", "tables [topics.NAME] are expected")
    wrong: dict[str, str] = {}
    topics = []
    for name, table in tables.items():
        try:
            topics.append(_topic(name, table))
        except ValueError as error:
            wrong[name] = str(error)
    if wrong:
        raise Failures({f"{path}: topic {name}": Failure(text) for name, text in wrong.items()})
    return topics


def _topic(name: str, table: Any) -> DeclaredTopic:
    """Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError("a topic's name has 1 to 249 letters, digits, dots, underscores and dashes")
    if not isinstance(table, dict):
        raise ValueError(f"a table [topics.{name}] is expected, not {table!r}")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise ValueError(f"{unknown[0]} is none of {', '.join(_KEYS)}; a name with dots stands in quotes")
    return DeclaredTopic(
        name, _count(table, "partitions"), _count(table, "replication-factor"), _configs(table.get("configs", {}))
    )


def _count(table: Mapping[str, Any], key: str) -> int | None:
    value = table.get(key)
    if value is not None and (type(value) is not int or not 0 < value <= _MOST[key]):
        raise ValueError(f"{key} = {value!r} is no number from 1 to {_MOST[key]}")
    return value


def _configs(table: Any, prefix: str = "") -> dict[str, str]:
    """`cleanup.policy = ...` without quotes is a table in a table to TOML."""
    if not isinstance(table, dict):
        raise ValueError(f"configs is a table of settings, not {table!r}")
    configs: dict[str, str] = {}
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            configs.update(_configs(value, f"{name}."))
        elif isinstance(value, bool):
            configs[name] = str(value).lower()
        elif isinstance(value, list):
            configs[name] = ",".join(map(str, value))
        elif isinstance(value, str | int | float):
            configs[name] = str(value)
        else:
            raise ValueError(f"{name} = {value} is neither text, a number, true or false, nor a list")
    return configs
