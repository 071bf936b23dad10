"""syncfs(2): one call that makes a whole file system durable, where a thousand logs would need thousands of fsyncs."""

import errno
import os
from typing import Final

_NOT_POSSIBLE: Final = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_REPORTS_ERRORS_SINCE: Final = (5, 8)


def syncfs(fd: int) -> bool:
    """Sync the file system that `fd` lies in; False where the system can't, or would not say that it failed.

    Linux reports what it could not write since version 5.8. Raises OSError.
    """
    if os.uname().sysname != "Linux" or _kernel_version() < _REPORTS_ERRORS_SINCE:
        return False
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return False
    if function(ctypes.c_int(fd)) == 0:
        return True
    error = ctypes.get_errno()
    if error in _NOT_POSSIBLE:
        return False
    raise OSError(error, os.strerror(error))


def _kernel_version() -> tuple[int, ...]:
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())
