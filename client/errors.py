"""Why a request has no answer, and why a client takes none.

What a broker answered with an error code is no failure of the client's: it comes as the answer it is.
"""

from kavka.client.kafka_error import AuthenticationError, FatalError, InvalidMetadataError, KafkaError
from kavka.protocol.errors import ErrorCode


class NetworkError(InvalidMetadataError, code=ErrorCode.NETWORK_EXCEPTION):
    """The network failed before an answer came."""


class ClientError(KafkaError):
    """A request has no answer; the message says why, and names the node."""


class DisconnectedError(ClientError, NetworkError):
    """The connection ended before the answer came. Whether the broker did what was asked is not known."""


class AnswerTimeoutError(DisconnectedError):
    """No answer came in time; the connection was closed, as what comes on it later would answer nobody."""


class BadAnswerError(DisconnectedError):
    """What came is no answer to what was asked: a lying length, a wrong correlation id, a cut message."""


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed: a certificate is not believed, or there is no version in common."""


class UnsupportedVersionError(ClientError, FatalError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The broker has none of the versions in which the request can be made. Nothing was sent."""


class ClientClosedError(KafkaError, RuntimeError):
    """The client was closed before, or while, it was used."""


class UsedAfterForkError(KafkaError, RuntimeError):
    """The client was made before this process was forked: its connections and its thread are the parent's."""


class ClientDiedError(FatalError):
    """The client's thread ended by an error that it should not have met; `__cause__` is that error."""
