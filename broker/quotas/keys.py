"""The quotas' names in an entity's configuration, and the texts of their numbers as Kafka writes them."""

import math
from collections.abc import Mapping
from typing import Final

from kavka.config.errors import ConfigError

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

CLIENT_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""Of users and client ids."""
IP_KEYS: Final = (CONNECTION_CREATION_RATE,)
LARGEST: Final[Mapping[str, int]] = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    CONNECTION_CREATION_RATE: 2**31 - 1,
}
"""Those that are whole numbers, and how large they may be; the others may have fractions."""


def client_limits(stored: Mapping[str, str]) -> dict[str, float]:
    """The quotas in a user's or client id's configuration, which has other settings too. Raises ConfigError."""
    return {key: _number(key, stored[key]) for key in CLIENT_KEYS if stored.get(key)}


def ip_limit(stored: Mapping[str, str]) -> int | None:
    """The connections a second of an address; None without a limit. Raises ConfigError."""
    text = stored.get(CONNECTION_CREATION_RATE)
    return int(_number(CONNECTION_CREATION_RATE, text)) if text else None


def _number(key: str, text: str) -> float:
    try:
        number = float(int(text)) if key in LARGEST else float(text)
    except (ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise ConfigError(key, text, "must be a number")
    return number


def double_text(number: float) -> str:
    """A finite number as Java's `Double.toString` writes it."""
    size = abs(number)
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(float(number))
    digits, _, exponent = f"{number!r}".partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    power = int(exponent or "0") + len(whole) - 1
    joined = whole + fraction
    if not exponent and whole == "0":
        power = -(len(fraction) - len(fraction.lstrip("0")) + 1)
    joined = joined.lstrip("0").rstrip("0")
    return f"{sign}{joined[0]}.{joined[1:] or '0'}E{power}"
