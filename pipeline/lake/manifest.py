"""The manifest on the disk: versions that are made one by one and never changed, and checkpoints of the whole.

A version is written under another name, fsynced, and then linked to its own: a link fails where the name is taken, so
that of two writers one wins, and there is never half a file. That link is the commit.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kavka.pipeline.lake.commit import Commit, decoded
from kavka.pipeline.lake.errors import ManifestError, UnknownFormatError
from kavka.pipeline.lake.fields import MAX_FILE_BYTES
from kavka.pipeline.lake.layout import Layout, version_of
from kavka.pipeline.lake.linking import link_new
from kavka.pipeline.lake.state import LakeState
from kavka.storage.files import Files

LEAST_VERSIONS: Final = 10
MOST_VERSIONS: Final = 500
"""Between two checkpoints lie so many versions. Within these one is due when a quarter of the entries is newer: what is
written for checkpoints is then never more than a few times what is written for the versions themselves."""

HOUR_MS: Final = 3_600_000

_ATTEMPTS: Final = 5

log = logging.getLogger(__name__)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class VersionTakenError(Exception):
    """Somebody else made the version that was to be made: look at it, and try again."""


class Manifest:
    """One process's view of a lake's manifest. Owned by one thread.

    Other processes may commit at any time; `refresh` hears of it. Methods raise ManifestError for what is not as it
    must be, and OSError.
    """

    def __init__(self, layout: Layout, files: Files | None = None, clock_ms: Callable[[], int] = now_ms) -> None:
        self.layout = layout
        self.state = LakeState()
        self._files = files or Files()
        self._clock_ms = clock_ms
        self._checkpoint = 0
        """The newest one that is not known to be unreadable."""
        self._garbled: dict[int, ManifestError | OSError] = {}
        self._too_long = 0
        self._changed = 0

    def create(self) -> None:
        """Make the folders that the manifest needs, and what is in them durable."""
        for folder in (self.layout.lake, self.layout.own, self.layout.manifest):
            self._files.makedirs(folder)
        # The manifest's own too: a link whose fsync failed is seen, and must not be gone after a power cut.
        for folder in (self.layout.lake.parent, self.layout.lake, self.layout.own, self.layout.manifest):
            self._files.fsync_directory(folder)

    def refresh(self) -> LakeState:
        """Read what is new; the state, which later calls change."""
        for attempt in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                self._read_on()
                break
            # Somebody removed old versions between the listing and the reading.
            if attempt == _ATTEMPTS - 1:
                raise ManifestError(f"{self.layout.manifest}: versions vanish while they are read")
        return self.state

    def commit(self, change: Commit, staging: str) -> Commit:
        """Make the next version of it; what was written. Durable once this returns.

        `staging` says whose staging folder the file is written in first. Raises VersionTakenError, with nothing
        changed, where somebody else made that version, and ManifestError for a change that no reader would take.
        """
        made = replace(change, version=self.state.version + 1, time_ms=self._clock_ms())
        path = self.layout.commit(made.version)
        data = made.encoded()
        # What is linked stays for good: it has to be what readers take.
        if len(data) > MAX_FILE_BYTES:
            raise ManifestError(f"{path} (not committed): it would have {len(data)} bytes, more than {MAX_FILE_BYTES}")
        self.state.check(decoded(data, f"{path} (not committed)"), f"{path} (not committed)")
        staged = self._staged(staging, data)
        try:
            link_new(self._files, staged, path)
        except FileExistsError:
            raise VersionTakenError(f"{path} is there") from None
        finally:
            self._files.unlink(staged)
        self._files.fsync_directory(self.layout.manifest)
        self._apply(made, str(path))
        return made

    def checkpoint_if_due(self, staging: str, keep_ms: int) -> None:
        """Write a checkpoint where reading has become long, and remove versions before the last one but one.

        Versions younger than `keep_ms` stay: somebody may be reading them. A checkpoint that would be longer than
        readers take is not written, and the versions since the last one stay, too.
        """
        versions = self.state.version - max(self._checkpoint, self._too_long)
        entries = len(self.state.files) + len(self.state.removed)
        if versions < LEAST_VERSIONS or (versions < MOST_VERSIONS and self._changed * 4 < entries):
            return
        previous = self._checkpoint
        path = self.layout.checkpoint(self.state.version)
        data = self.state.encoded()
        if len(data) > MAX_FILE_BYTES:
            log.warning("%s: not written, it would have %d bytes: compact the lake", path, len(data))
            self._too_long, self._changed = self.state.version, 0
            return
        self._files.rename(self._staged(staging, data), path)
        for folder in (self.layout.manifest, self.layout.staging(staging)):
            self._files.fsync_directory(folder)
        self._checkpoint, self._changed = self.state.version, 0
        self._garbled.pop(self._checkpoint, None)
        self._remove_before(previous, keep_ms)

    def commits(self) -> list[Commit]:
        """The versions that are still there, oldest first."""
        found = []
        for version, is_checkpoint in self._listed():
            if not is_checkpoint:
                with contextlib.suppress(FileNotFoundError):
                    found.append(self._commit(version))
        return found

    def _read_on(self) -> None:
        listed = self._listed()
        newest = max((version for version, _ in listed), default=0)
        if newest < self.state.version:
            raise ManifestError(f"{self.layout.manifest}: version {self.state.version} is gone")
        checkpoints = [version for version, is_checkpoint in listed if is_checkpoint]
        self._begin_with([version for version in checkpoints if version > self.state.version])
        readable = [version for version in checkpoints if version not in self._garbled]
        self._checkpoint = max([self._checkpoint, *readable])
        present = {version for version, is_checkpoint in listed if not is_checkpoint}
        for version in range(self.state.version + 1, newest + 1):
            path = self.layout.commit(version)
            if version not in present:
                if self._files.exists(path):
                    raise FileNotFoundError(path)
                # Versions are removed where a checkpoint stands for them: if that is garbled, that is what is wrong.
                covering = [garbled for garbled in self._garbled if garbled >= version]
                if covering:
                    raise self._garbled[max(covering)]
                raise ManifestError(f"{path}: it is missing, and there are later versions")
            self._apply(self._commit(version), str(path))

    def _begin_with(self, checkpoints: list[int]) -> None:
        """Go on to the newest of these that can be read; versions one by one are kept from the one before it on.

        Raises UnknownFormatError, FileNotFoundError.
        """
        for version in sorted(checkpoints, reverse=True):
            path = self.layout.checkpoint(version)
            try:
                state = LakeState.decoded(self._files.read_bytes(path, MAX_FILE_BYTES), str(path))
                if state.version != version:
                    raise ManifestError(f"{path}: it holds version {state.version}")
            except (FileNotFoundError, UnknownFormatError):
                raise
            except (ManifestError, OSError) as error:
                if version not in self._garbled:
                    log.warning("an earlier checkpoint is read, as this one cannot be: %s", error)
                self._garbled[version] = error
            else:
                self.state, self._changed = state, 0
                return

    def _commit(self, version: int) -> Commit:
        path = self.layout.commit(version)
        return decoded(self._files.read_bytes(path, MAX_FILE_BYTES), str(path))

    def _apply(self, commit: Commit, where: str) -> None:
        self.state.apply(commit, where)
        self._changed += len(commit.add) + len(commit.remove) + len(commit.forget)

    def _listed(self) -> list[tuple[int, bool]]:
        try:
            names = self._files.listdir(self.layout.manifest)
        except FileNotFoundError:
            return []
        return sorted(found for name in names if (found := version_of(name)) is not None)

    def _staged(self, staging: str, data: bytes) -> str:
        folder = self.layout.staging(staging)
        self._files.makedirs(folder)
        path = str(folder / f"{uuid.uuid4().hex}.json")
        self._files.write_file(path, data)
        self._files.fsync_file(path)
        return path

    def _remove_before(self, checkpoint: int, keep_ms: int) -> None:
        """Remove what nobody needs who begins with this checkpoint or a later one."""
        limit_ms = self._clock_ms() - keep_ms
        for version, is_checkpoint in self._listed():
            if version > checkpoint or (is_checkpoint and version == checkpoint):
                return
            path = self.layout.checkpoint(version) if is_checkpoint else self.layout.commit(version)
            with contextlib.suppress(FileNotFoundError):
                if self._files.modified_ms(path) > limit_ms:
                    return
                self._files.unlink(path)
