"""Addresses of pages and files among the settings."""

from __future__ import annotations

from urllib.parse import urlsplit

from kavka.config.errors import ConfigError
from kavka.config.values import HIDDEN


def check_url(name: str, url: str) -> None:
    """Raises ConfigError where nobody could ask there. The error does not show the address: it may have a password."""
    try:
        parts = urlsplit(url)
        is_file = parts.scheme == "file"
        is_complete = bool(parts.path) if is_file else bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Whose text has a part of it.
        raise ConfigError(name, HIDDEN, "Must be a URL: its host and port cannot be read") from None
    if parts.scheme not in ("http", "https", "file"):
        raise ConfigError(name, HIDDEN, "Must be a URL with https, http or file")
    if not is_complete:
        raise ConfigError(name, HIDDEN, f"Must be a URL with a {'path' if is_file else 'host'}")
