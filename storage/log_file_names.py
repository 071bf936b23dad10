"""Names in a partition's folder: which files are a log's own, whether this broker or a Kafka wrote them.

    00000000000000001000.log        and .index .timeindex .txnindex .snapshot; in every folder of every Kafka since 0.8
    X.deleted  X.swap  X.cleaned    of these, on the way in or out; X.TOKEN.cleaned is our own cleaner's
    leader-epoch-checkpoint         since 0.11
    partition.metadata              since 2.8
    kavka-unproven                  our own: the log may lack records (`unproven_mark`)
    kavka-moved                 our own: it took the place of another folder (`move_marks`)
    X.tmp                           of these, before they are renamed

A folder in which none of these lies is no log, whatever it is called. What else lies beside them (an operator's note,
`.nfs...`) is somebody else's: it does not keep the log from being served, and nothing here ever touches it.
"""

import errno
import re
from pathlib import Path
from typing import Final

from kavka.storage import leader_epochs, move_marks, partition_metadata, unproven_mark
from kavka.storage.files import Files

_OWN: Final = re.compile(
    r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)(\.[0-9a-z]+\.cleaned|(\.(deleted|swap|cleaned|tmp))*)"
    rf"|({re.escape(leader_epochs.FILE_NAME)}|{re.escape(partition_metadata.FILE_NAME)}|{move_marks.FILE_NAME})(\.tmp)?"
    rf"|{re.escape(unproven_mark.FILE_NAME)}"
)

_NO_FOLDER: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""What a name says that leads to no folder: it is gone, a file, a link to itself or to nothing that can be."""


def is_log_file(name: str) -> bool:
    """Whether a file of this name belongs to the log in whose folder it lies."""
    return _OWN.fullmatch(name) is not None


def holds_log(folder: Path, files: Files) -> bool:
    """Whether a log's files lie in the folder. Raises OSError, but not for what is gone or is no folder."""
    # Nearly every folder has it, and asking for one name is cheaper than listing all.
    if files.exists(folder / partition_metadata.FILE_NAME):
        return True
    try:
        return any(map(is_log_file, files.listdir(folder)))
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        return False
