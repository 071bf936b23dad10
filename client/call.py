"""A request on its way: in which versions it can be made, when it is too late, and who hears of its answer."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from kavka.client.errors import UnsupportedVersionError
from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.schema import Request, schema_of

VersionRange: TypeAlias = tuple[int, int]
"""Oldest and newest, both inclusive."""

Callback: TypeAlias = Callable[[Any], None]
"""Takes the answer, a message of the request's API, or the ClientError in its place."""


class RequestBuilder(NamedTuple):
    """A request whose content depends on the version in which it goes out: `build(version)` makes it."""

    api_key: int
    build: Callable[[int], Request]


Sendable: TypeAlias = Request | RequestBuilder


class Call:
    """One request and what is to become of it. Threads: the client's owner alone."""

    __slots__ = (
        "answer_size_bytes",
        "api_key",
        "build",
        "callback",
        "correlation_id",
        "deadline_ms",
        "newest",
        "oldest",
        "sent_ms",
        "size_bytes",
        "version",
    )

    def __init__(
        self, request: Sendable, callback: Callback, versions: VersionRange | None = None, deadline_ms: float = 0
    ) -> None:
        """`versions` bounds those in which it may go out: by default all that are known here."""
        if isinstance(request, RequestBuilder):
            self.api_key: int = request.api_key
            self.build: Callable[[int], Request] = request.build
        else:
            key = schema_of(type(request)).key
            assert key is not None
            self.api_key = key
            self.build = lambda _: request
        known = VERSIONS[self.api_key]
        self.oldest, self.newest = versions if versions is not None else (known.oldest, known.newest)
        self.callback: Final = callback
        self.deadline_ms: Final = deadline_ms
        """On the client's clock."""
        self.sent_ms = 0.0
        """On the client's clock."""
        self.size_bytes = 0
        self.answer_size_bytes = 0
        self.correlation_id = -1
        self.version = -1

    def choose_version(self, served: VersionRange | None) -> int:
        """The newest version that both sides have; `served` is None for a broker without that API.

        Raises UnsupportedVersionError.
        """
        if served is not None and (version := min(self.newest, served[1])) >= max(self.oldest, served[0]):
            return version
        name = ApiKey(self.api_key).title
        has = "does not serve it" if served is None else f"serves versions {served[0]} to {served[1]}"
        raise UnsupportedVersionError(f"{name} in versions {self.oldest} to {self.newest}: the broker {has}")
