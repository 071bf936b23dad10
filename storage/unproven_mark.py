"""`kavka-unproven` in a partition's folder: the log was made in place of one that was lost, and may lack its records.

Made before anything else in the folder, and durable before: wherever a crash strikes there is no log without it. It
goes when somebody has proven that nothing is missing (`ManagedLog.note_proven`), and not by anything that happens to
the log: whoever copies or moves the folder takes it along. To Kafka it is a file that it does not know, and leaves
alone until the topic is deleted. A folder without it is whole: Kafka's, and all that were made as new partitions.
"""

import contextlib
from pathlib import Path
from typing import Final

from kavka.storage.files import AnyPath, Files

FILE_NAME: Final = "kavka-unproven"
_TEXT: Final = (
    b"The disk that held this partition was replaced. Until this replica has caught up with a leader it must not lead\n"
    b"itself, or the others would lose what they have. Leave this file to the broker, and copy it with the folder.\n"
)


def put(folder: AnyPath, files: Files) -> None:
    """Mark the log, durably. Raises OSError."""
    # What it says is for people: its name alone counts, and is durable with the folder.
    files.write_file(Path(folder) / FILE_NAME, _TEXT)
    files.fsync_directory(folder)


def remove(folder: AnyPath, files: Files) -> None:
    """Take the mark off, durably: who leads now must not be refused that after a power cut. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        files.unlink(Path(folder) / FILE_NAME)
    files.fsync_directory(folder)
