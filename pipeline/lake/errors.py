"""What can be wrong with a lake, each in one line that says where and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka.pipeline.running.sink import SinkError


class LakeError(Exception):
    """Something about a lake that somebody has to see to."""


class ManifestError(LakeError):
    """A file of the manifest, or one that it names, is not what it must be; the message begins with its path."""


class UnknownFormatError(ManifestError):
    """A file of the manifest has a layout that this code does not know."""


class LakeLockedError(LakeError):
    """Somebody else writes this lake; the message says who."""


@contextmanager
def said() -> Iterator[None]:
    """What is wrong with a lake ends a run in one line: as a SinkError."""
    try:
        yield
    except LakeError as error:
        raise SinkError(str(error)) from error
