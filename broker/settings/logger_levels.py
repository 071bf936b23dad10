"""The levels of the broker's own loggers, as the BROKER_LOGGER resource shows and sets them (KIP-412).

Levels have log4j's names. Only loggers below `kavka` are touched, and that of the audit: the rest belongs to whoever
embeds the broker.
"""

import logging
from typing import Final

from kavka.broker.metrics.log_lines import AUDIT, LEVELS, ROOT
from kavka.protocol.errors import BrokerError, ErrorCode

ROOT_SHOWN: Final = "root"


def levels() -> dict[str, str]:
    """Every logger with the level that counts for it."""
    return {shown: _level_name(logging.getLogger(name)) for shown, name in sorted(_loggers().items())}


def check(shown: str, level: str | None) -> None:
    """Raise BrokerError unless that logger exists and can have that level (None: take its own level away)."""
    if shown not in _loggers():
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Logger {shown[:200]} does not exist!")
    if level is None and shown == ROOT_SHOWN:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT_SHOWN} logger is not allowed"
        )
    if level is not None and level.strip().upper() not in LEVELS:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {shown} to {level[:100]} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )


def set_level(shown: str, level: str | None) -> None:
    """Give a logger a level, or None: that of the logger above it. `check` comes first."""
    logger = logging.getLogger(_loggers()[shown])
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level.strip().upper()])


def _loggers() -> dict[str, str]:
    """Names as they are shown, and as logging knows them."""
    own = [name for name in list(logging.root.manager.loggerDict) if name == AUDIT or name.startswith(ROOT + ".")]
    return {ROOT_SHOWN: ROOT} | {name: name for name in own}


def _level_name(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, number in reversed(LEVELS.items()) if number <= effective), "TRACE")
