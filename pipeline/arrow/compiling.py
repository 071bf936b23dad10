"""Functions compiled by numba, once for a machine: the next process loads what this one compiled.

Numba keeps what it compiled beside the module, or where that cannot be written to, in the user's cache directory;
`NUMBA_CACHE_DIR` names another one. A worker in a container may be able to write to neither: then a directory of the
user's own in the system's temporary one serves, and where that cannot be trusted either, each process compiles anew
(seconds), and says so once.
"""

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_log: Final = logging.getLogger(__name__)


def compiled(function: Function) -> Function:
    """The function compiled when it is first called; it runs without the GIL, and checks no index by itself."""
    compile_it: Any = numba.njit(nogil=True, cache=True)
    try:
        return cast(Function, compile_it(function))
    except RuntimeError:
        # Numba's word for: there is no place for a cache.
        folder = own_folder()
    if folder is None:
        _log.warning("nowhere to keep compiled code, set NUMBA_CACHE_DIR: function=%s", function.__name__)
        return cast(Function, numba.njit(nogil=True)(function))
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = folder
    try:
        return cast(Function, compile_it(function))
    finally:
        settings.CACHE_DIR = before


def inlined(function: Function) -> Function:
    """A function that becomes part of those that call it: handing over arrays would cost more than it does."""
    inline_it: Any = numba.njit(nogil=True, inline="always")
    return cast(Function, inline_it(function))


def own_folder() -> str | None:
    """A directory that nobody else can write to: what lies there is run. None where there is no such."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"kavka-compiled-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return str(folder) if is_own and os.access(folder, os.W_OK) else None
