"""What can be wrong with record bytes."""

from kavka.protocol.errors import DecodeError


class CorruptRecordsError(DecodeError):
    """Bytes that no producer would write: impossible lengths, a wrong CRC, counts that lie (CORRUPT_MESSAGE)."""


class TruncatedBatchError(CorruptRecordsError):
    """A batch that goes on beyond the data: normal at the end of a fetched slice, wrong in a Produce request."""


class CompressionLimitError(CorruptRecordsError):
    """Compressed data that would unpack to more than the caller allows."""


class UnsupportedCodecError(CorruptRecordsError):
    """A codec number that Kafka doesn't know (5 to 7), or one the message format can't carry."""
