"""Topics by name, by pattern and by id."""

import base64
import re
from collections.abc import Iterable

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE


def matching(pattern: str | None, names: Iterable[str]) -> list[str]:
    """The names that match as a whole; all without a pattern. `a,b` is either, as in Kafka's tools. Raises Failure."""
    if pattern is None:
        return list(names)
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        expression = re.compile(text)
    except re.error as error:
        raise Failure(f"--topic {pattern}: {error}", "a regular expression is expected", WRONG_USAGE) from error
    return [name for name in names if expression.fullmatch(name)]


def uuid_text(uuid: bytes) -> str:
    """An id of sixteen bytes as Kafka shows it: base64 for addresses, unpadded."""
    return base64.urlsafe_b64encode(uuid)[:22].decode()
