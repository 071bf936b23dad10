"""fsync of a log's files, in the order that lets the recovery point move: segments, indexes, snapshots, directory."""

import contextlib

from kavka.storage import partition_metadata
from kavka.storage.files import final
from kavka.storage.log_state import LogState
from kavka.storage.segment import Segment


def flush(log: LogState, up_to_offset: int | None) -> None:
    """fsync everything below `up_to_offset` (None: the log's end), then move the recovery point. No lock held.

    Appends go on meanwhile. Raises AppendError (KAFKA_STORAGE_ERROR), and then the recovery point stays.
    """
    with log.flush_lock:
        with log.lock:
            if log.broken:
                log.check_open()
            if log.closed or log.deleting:
                return
            end_offset, _, segments, _ = log.published
            target = end_offset if up_to_offset is None else min(up_to_offset, end_offset)
            log.last_flush_ms = log.environment.now_ms()
            sealed = [segment for segment in log.sealed if segment.base_offset < target]
            snapshots = {offset for offset in log.snapshots.unsynced if offset <= target}
            if target <= log.recovery_point and not sealed and not snapshots:
                return
            chosen = _with(sealed, _segments_between(segments, log.recovery_point, target))
            if segments[-1] in chosen:
                try:
                    segments[-1].save_indexes()
                except OSError as error:
                    raise log.disk_failed("flush failed", error) from error
            truncations, changes = log.truncations, log.changes
        if not fsync_segments(log, chosen, [log.snapshots.path(offset) for offset in snapshots]):
            return
        log.durable_changes = changes
        with log.lock:
            # A truncation may have taken back what was just made durable.
            if log.truncations == truncations:
                log.recovery_point = max(log.recovery_point, target)
                log.sealed = [segment for segment in log.sealed if segment not in sealed]
                log.snapshots.unsynced -= snapshots


def flush_all(log: LogState) -> None:
    """fsync whatever the recovery point doesn't vouch for, the last segment in any case: a clean close's flush.

    Nobody appends any more. `flush_lock` held. Raises AppendError (KAFKA_STORAGE_ERROR).
    """
    with log.lock:
        end_offset, _, segments, _ = log.published
        chosen = _with(log.sealed, _segments_between(segments, log.recovery_point, end_offset + 1) or [segments[-1]])
        snapshots = [log.snapshots.path(offset) for offset in log.snapshots.unsynced]
    fsync_segments(log, chosen, snapshots)
    note_durable(log)


def flush_held(log: LogState) -> None:
    """fsync everything while nobody can append, and move the recovery point: `flush_lock` and `lock` are held.

    For what little came since the last `flush`. Raises AppendError (KAFKA_STORAGE_ERROR).
    """
    end_offset, _, segments, _ = log.published
    try:
        segments[-1].save_indexes()
    except OSError as error:
        raise log.disk_failed("flush failed", error) from error
    chosen = _with(log.sealed, _segments_between(segments, log.recovery_point, end_offset))
    if fsync_segments(log, chosen, [log.snapshots.path(offset) for offset in log.snapshots.unsynced]):
        log.durable_changes = log.changes
        log.recovery_point = end_offset
        log.sealed = []
        log.snapshots.unsynced.clear()


def save_all(log: LogState) -> bool:
    """Write what is only in memory, but for the epochs; whether anything wants an fsync now. Nobody appends any more.

    `flush_lock` held. Raises AppendError (KAFKA_STORAGE_ERROR).
    """
    with log.lock:
        end_offset, _, segments, _ = log.published
        active = segments[-1]
        try:
            active.finish_time_index()
            saved = active.save_indexes()
            log.producers.map_end_offset = end_offset
            saved |= log.snapshots.take(log.producers.entries(), end_offset)
        except OSError as error:
            raise log.disk_failed("the log can't be closed cleanly", error) from error
        return (
            saved
            or log.recovery_point != end_offset
            or log.durable_changes != log.changes
            or not log.topic_id_saved
            or not log.folder_saved
            or bool(log.snapshots.unsynced)
            or log.saved_epochs != log.epochs.entries
        )


def note_durable(log: LogState) -> None:
    """All of the log's files are on the disk. Nobody appends any more; `flush_lock` held."""
    with log.lock:
        log.recovery_point = log.published[0]
        log.durable_changes = log.changes
        log.sealed = []
        log.snapshots.unsynced.clear()
        log.at_rest = True
    log.topic_id_saved = log.folder_saved = True


def fsync_segments(log: LogState, segments: list[Segment], snapshots: list[str]) -> bool:
    """fsync the segments' files, snapshots, epochs, folder and its name; False if the log's deletion cut that short.

    flush_lock held. Raises AppendError (KAFKA_STORAGE_ERROR). An fsync that fails, with whatever errno, is the log's
    last.
    """
    files = log.files
    try:
        for segment in segments:
            if log.deleting:
                return False
            # Retention may delete a segment meanwhile: then nothing of it needs to be durable.
            with contextlib.suppress(FileNotFoundError):
                fd = segment.file.acquire()
                try:
                    with final():
                        files.fsync(fd)
                finally:
                    segment.file.release()
        indexes = [path for segment in segments for path in segment.paths()[1:]]
        metadata = () if log.topic_id_saved else (f"{log.folder}/{partition_metadata.FILE_NAME}",)
        for path in (*indexes, *snapshots, *metadata):
            if log.deleting:
                return False
            # An empty index is told by its folder's entry alone.
            with contextlib.suppress(FileNotFoundError):
                if files.size(path):
                    files.fsync_file(path)
        log.topic_id_saved = True
        log.save_epochs()
        files.fsync_directory(log.folder)
        if not log.folder_saved:
            files.fsync_directory(log.directory.parent)
            log.folder_saved = True
    except OSError as error:
        raise log.disk_failed("flush failed", error) from error
    return True


def _with(sealed: list[Segment], chosen: list[Segment]) -> list[Segment]:
    return [*(segment for segment in sealed if segment not in chosen), *chosen]


def _segments_between(segments: tuple[Segment, ...], recovery_point: int, target: int) -> list[Segment]:
    """Those that may hold an offset from the recovery point up to below the target."""
    chosen = []
    for number, segment in enumerate(segments):
        ends = segments[number + 1].base_offset if number + 1 < len(segments) else target + 1
        if ends > recovery_point and segment.base_offset < target:
            chosen.append(segment)
    return chosen
