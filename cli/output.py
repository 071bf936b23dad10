"""What commands print: results on standard output, complaints, one line each, on standard error."""

import errno
import os
import sys
from typing import Final

READER_LEFT: Final = 141
FAILED: Final = 1


class OutputError(Exception):
    """Standard output takes no more: its reader left, its disk is full. No fault of what is being shown."""

    def __init__(self, cause: OSError) -> None:
        self.exit_code = READER_LEFT if isinstance(cause, BrokenPipeError) else FAILED
        super().__init__(f"the output cannot be written: {cause.strerror}")


def emit(line: str) -> None:
    """Print one line. Raises OutputError."""
    if sys.stdout is None:  # the shell's `>&-`
        raise OutputError(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    try:
        print(line)
    except OSError as error:
        raise OutputError(error) from error


def emit_bytes(data: bytes) -> None:
    """Write the bytes behind what was printed, and do not keep them. Raises OutputError."""
    flush()
    if sys.stdout is None:
        raise OutputError(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OutputError(error) from error


def flush() -> None:
    """Write what is buffered, so that a full disk is noticed. Raises OutputError."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(error) from error


def give_up_output() -> None:
    """Let what is still buffered go nowhere: Python would complain again at exit."""
    if sys.stdout is None:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def complain(command: str, error: BaseException | str) -> int:
    """Say on one line what went wrong; gives the exit code."""
    print(f"{command}: {_text(error)}", file=sys.stderr)
    return FAILED


def _text(error: BaseException | str) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
