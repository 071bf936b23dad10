"""The kinds of what goes wrong with a cluster. `api_errors` has a class for each of the protocol's codes.

KafkaError
  RetriableError          trying again may help
    InvalidMetadataError  after metadata were fetched anew
  AbortableError          the transaction has to be aborted; the producer goes on
  FatalError              the client cannot go on; close it
  AuthorizationError      the principal may not
  AuthenticationError     nobody knows the principal; fatal
"""

from collections.abc import Hashable
from typing import Final

from kavka.protocol.errors import ErrorCode

ERROR_CLASSES: Final[dict[int, "type[KafkaError]"]] = {}
"""By code. Filled by the classes as they are made, and complete once `api_errors` is imported."""


class KafkaError(Exception):
    """Something that was asked of a cluster did not work; the message says what.

    `code` is the protocol's, as brokers answer it; what went wrong on this side has the code that comes nearest.

        from kavka.client.api_errors import KafkaError, RetriableError

        try:
            admin.describe_topics(["no-such-topic"], timeout_ms=10_000)
        except RetriableError as error:
            print("perhaps later:", error)
        except KafkaError as error:
            print(error.code, error)
    """

    code: int = ErrorCode.UNKNOWN_SERVER_ERROR
    item: Hashable = None
    """What it is about, where a call on several items was given this one alone: a topic's name, a partition."""

    def __init_subclass__(cls, *, code: ErrorCode | None = None) -> None:
        """`code` makes the class the one of that code."""
        super().__init_subclass__()
        if code is not None:
            cls.code = int(code)
            ERROR_CLASSES[cls.code] = cls

    def __init__(self, message: str | None = None) -> None:
        """Without a message it says what the code means."""
        super().__init__(ErrorCode(self.code).message if message is None else message)


class RetriableError(KafkaError):
    """The same may succeed when it is tried again."""


class InvalidMetadataError(RetriableError):
    """Not there, or not any more: to be tried again once the metadata have been fetched anew."""


class AbortableError(KafkaError):
    """A transaction cannot be committed after this: abort it, and go on with the next (KIP-360, KIP-890)."""


class FatalError(KafkaError):
    """The client cannot go on: it is of no use but to be closed."""


class AuthorizationError(KafkaError):
    """The client's principal is not allowed to do this."""


class AuthenticationError(FatalError):
    """The broker does not know who the client is, or does not believe it."""


class KafkaTimeoutError(RetriableError, TimeoutError, code=ErrorCode.REQUEST_TIMED_OUT):
    """A time limit was over, of a call here or of a request there. Also a TimeoutError of Python's."""
