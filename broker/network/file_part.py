"""A piece of a segment file on its way into a socket: what `sendfile` has still to send of it."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.storage.log_slice import LogSlice


class FilePart:
    """Pins its segment from construction until `release`. Raises BrokerError, FileNotFoundError as the slice does.

    Threads: made by the thread that answers, then under the connection's write lock.
    """

    __slots__ = ("_file_descriptor", "_slice", "position", "size_bytes")

    def __init__(self, piece: "LogSlice") -> None:
        self._file_descriptor: Final = piece.acquire()
        self._slice = piece
        self.position = piece.position
        self.size_bytes = piece.size_bytes

    def fileno(self) -> int:
        """The descriptor to send from."""
        return self._file_descriptor

    def failed(self, error: OSError | None) -> None:
        """The file could not be read, or with None, it ended too early."""
        self._slice.failed(error)

    def release(self) -> None:
        """Unpin the segment."""
        self._slice.release()
