"""The file system below a test's broker: nothing waits for the disk, for nothing needs to outlive the machine."""

from kavka.storage.files import AnyPath, Files


class UnsyncedFiles(Files):
    """As `Files`, without fsync: what was written survives the broker, and no more than that. Stateless; any thread."""

    __slots__ = ()

    def fsync(self, _fd: int) -> None:
        """Not made durable."""

    def fsync_directory(self, path: AnyPath) -> None:
        """Not made durable."""

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        """Not made durable; as if it were."""
        return True
