"""What a fetcher asks the leaders of its partitions, one broker at a time."""

from collections.abc import Mapping
from typing import Final, Protocol

from kavka.broker.replication.followed_partitions import FetchPlan, Key
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse

EARLIEST: Final = -2
LATEST: Final = -1


class LeaderUnreachableError(Exception):
    """No answer came, or none that can be used. The message says why."""


class LeaderPort(Protocol):
    """The broker that a fetcher copies from. All methods but `wake` by the fetcher's thread alone."""

    def fetch(self, plan: FetchPlan) -> FetchResponse:
        """Fetch, which may wait at the leader. Raises LeaderUnreachableError."""

    def offsets(self, epochs: Mapping[Key, int], timestamp: int) -> Mapping[Key, tuple[ErrorCode, int]]:
        """Where the logs begin or end (EARLIEST, LATEST), as of the leader epochs. Raises LeaderUnreachableError.

        A partition that the answer does not have is not in what is returned.
        """

    def wake(self) -> None:
        """Have what waits return soon, with LeaderUnreachableError. Any thread."""

    def close(self) -> None:
        """Close the connection."""


def known_code(error_code: int) -> ErrorCode:
    """What an answer has for an error, which may be any number."""
    try:
        return ErrorCode(error_code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
