"""Why a request has no answer.

What a broker answered with an error code is no failure of the client's: it comes as the answer it is.
"""


class ClientError(Exception):
    """A request has no answer; the message says why, and names the node."""


class DisconnectedError(ClientError):
    """The connection ended before the answer came. Whether the broker did what was asked is not known."""


class AnswerTimeoutError(DisconnectedError):
    """No answer came in time; the connection was closed, as what comes on it later would answer nobody."""


class BadAnswerError(DisconnectedError):
    """What came is no answer to what was asked: a lying length, a wrong correlation id, a cut message."""


class UnsupportedVersionError(ClientError):
    """The broker has none of the versions in which the request can be made. Nothing was sent."""
