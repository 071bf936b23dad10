"""A worker process: `python -m kavka.storage.cleaner.worker`, with jobs on standard input, replies on standard output.

It ends when its input does, so that it never outlives its broker: the pipe closes with the broker's process, however
that ends. It runs at a low priority, and reads nothing but segments and writes nothing but `.cleaned` files.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any, Final

from kavka.protocol.errors import DecodeError
from kavka.storage.cleaner.cleaning import LogRound
from kavka.storage.cleaner.jobs import (
    ABORTED,
    BROKEN,
    CORRUPT,
    DISK,
    GONE,
    CleaningFailed,
    CleanJob,
    Reply,
    decode_job,
    encode_reply,
)
from kavka.storage.cleaner.throttle import Throttle
from kavka.storage.files import Files
from kavka.storage.offset_index import CorruptIndexError

NICENESS: Final = 10
"""Who serves clients comes first; but whoever comes last (19) gets a hundredth of a busy processor, and logs grow."""


class AbortedError(Exception):
    """The broker doesn't want the round to go on."""


class Worker:
    """Runs jobs one after the other.

    Threads: `listen` belongs to a thread of its own, `work` to the main thread. `_aborted` is swapped by the first and
    read by the second; the queue holds one job at most, for the broker waits for a reply before it sends another.
    """

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes], files: Files) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._files = files
        self._jobs: queue.SimpleQueue[CleanJob] = queue.SimpleQueue()
        self._throttle = Throttle(float("inf"), time.monotonic)
        self._aborted = ""

    def listen(self) -> None:
        """Take in messages until there are no more: then the process ends, whatever it is at."""
        with contextlib.suppress(OSError, ValueError):
            for line in self._incoming:
                self._take(json.loads(line))
        os._exit(0)

    def work(self) -> None:
        """Never returns: the process ends with its input."""
        while True:
            job = self._jobs.get()
            for reply in self._replies(job):
                self._outgoing.write(encode_reply(reply))
                self._outgoing.flush()

    def _take(self, message: dict[str, Any]) -> None:
        if "clean" in message:
            job = decode_job(message["clean"])
            self._throttle.set_rate(job.bytes_per_second)
            self._jobs.put(job)
        elif "bytes_per_second" in message:
            self._throttle.set_rate(message["bytes_per_second"])
        elif "abort" in message:
            self._aborted = message["abort"]

    def _replies(self, job: CleanJob) -> Iterator[Reply]:
        def keep_on() -> None:
            if self._aborted == job.token:
                raise AbortedError

        try:
            yield from LogRound(job, self._files, self._throttle, keep_on).run()
        except AbortedError:
            yield CleaningFailed(ABORTED, "")
        except FileNotFoundError as error:
            yield CleaningFailed(GONE, str(error))
        except (DecodeError, CorruptIndexError) as error:
            yield CleaningFailed(CORRUPT, f"{type(error).__name__}: {error}")
        except OSError as error:
            yield CleaningFailed(DISK, str(error), error.errno or 0)
        except Exception as error:  # noqa: BLE001 - whatever it is, the broker must hear of it and decide
            yield CleaningFailed(BROKEN, f"{type(error).__name__}: {error}")


def main() -> None:
    """Work until the input ends."""
    os.nice(NICENESS)
    outgoing = os.fdopen(os.dup(1), "wb")
    # Nothing else may get between the replies.
    os.dup2(2, 1)
    worker = Worker(sys.stdin.buffer, outgoing, Files())
    threading.Thread(target=worker.listen, name="listen", daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        worker.work()
    # An ordinary end would be an abort: the interpreter, on its way out, wants the lock that `listen` reads under.
    os._exit(0)


if __name__ == "__main__":
    main()
