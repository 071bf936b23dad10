"""A group member as a process: `python -m tests.support.group_member LIBRARY key=value...`, until it is told to close.

Keys that begin with `member.` are ours: `member.topics` (comma-separated) or `member.pattern`, `member.commit` (sync,
async, auto, none: after each batch) and `member.process.ms` (time spent on each batch). The rest are consumer settings
by Kafka's names. What happens is printed as a JSON object a line: `event`, `at_ns` (the machine's monotonic clock), and

    assigned, revoked, lost   partitions, generation (where the library tells)
    delivered                 partition, first, next (offsets; printed before the batch counts as processed)
    committed                 offsets by partition, as the broker acknowledged them
    commit_failed, error      error
    sought                    partition, offset
    obeyed                    order
    closing, closed           around the library's close: nothing is delivered from the first on

Lines on stdin are orders: `close`, `pause`, `resume`, `seek TOPIC-N OFFSET`, `hold` (the next batch is processed until
`release`), `commit` (what was delivered, synchronously), `unsubscribe`. The end of stdin ends the process, and so does
being fenced: a fenced consumer would come back and fence the other. tests/java/GroupMember.java is the same in Java.
"""

import faulthandler
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from tests.support.processes import let_pass

POLL_S = 0.1
BATCH_RECORDS = 50

Offsets = Mapping[str, int]
Report = Callable[[Iterable[tuple[str, int]]], dict[str, int]]


class Library(Protocol):
    """What each client library does in its own words. Partitions are named TOPIC-N."""

    @property
    def generation(self) -> int | None: ...

    def poll(self, report: Report) -> dict[str, int]:
        """What `report` makes of partition and offset of the next records; there are none after about POLL_S.

        It is called in the thread that takes partitions away, so that nothing comes between.
        """
        ...

    def commit(self, offsets: Offsets) -> None: ...

    def commit_async(self, offsets: Offsets, done: Callable[[Exception | None], None]) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def seek(self, partition: str, offset: int) -> None: ...

    def unsubscribe(self) -> None: ...

    def close(self) -> None: ...


class Journal:
    """Events on stdout. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.generation_of: Callable[[], int | None] = lambda: None

    def note(self, event: str, **facts: object) -> None:
        line = json.dumps({"event": event, "at_ns": time.monotonic_ns(), **facts})
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def assigned(self, partitions: Iterable[str]) -> None:
        self.note("assigned", partitions=sorted(partitions), generation=self.generation_of())

    def revoked(self, partitions: Iterable[str]) -> None:
        self.note("revoked", partitions=sorted(partitions))

    def lost(self, partitions: Iterable[str]) -> None:
        self.note("lost", partitions=sorted(partitions))


class Member:
    """The loop: orders, a batch, its processing, its commit. Owned by the main thread."""

    def __init__(self, library: Library, journal: Journal, *, commit: str, process_ms: int) -> None:
        self.library = library
        self.journal = journal
        self.commit_mode = commit
        self.process_ms = process_ms
        self._holds_next = False
        self._released = threading.Event()
        self._delivered: dict[str, int] = {}
        self._orders: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self) -> None:
        threading.Thread(target=self._read_orders, daemon=True).start()
        while self._obey():
            try:
                batch = self.library.poll(self._report)
            except Exception as error:  # noqa: BLE001 - whatever a library raises is what the test wants to see
                self.journal.note("error", error=_said(error))
                if "Fenced" in _said(error):
                    break
                continue
            if not batch:
                continue
            if self._holds_next:
                self._released.wait()
                self._holds_next = False
            let_pass(self.process_ms / 1000)
            self._delivered.update(batch)
            if self.commit_mode == "sync":
                self._commit(batch)
            elif self.commit_mode == "async":
                self.library.commit_async(batch, partial(self._committed, batch))
        self.journal.note("closing")
        self.library.close()
        self.journal.note("closed")

    def _obey(self) -> bool:
        """Do what was ordered; whether to go on."""
        while not self._orders.empty():
            order = self._orders.get().strip()
            word, *rest = order.split()
            if word == "close":
                return False
            if word == "seek":
                self.library.seek(rest[0], int(rest[1]))
                self.journal.note("sought", partition=rest[0], offset=int(rest[1]))
            elif word == "hold":
                self._released.clear()
                self._holds_next = True
            elif word == "commit":
                self._commit(self._delivered)
            else:
                {"pause": self.library.pause, "resume": self.library.resume, "unsubscribe": self.library.unsubscribe}[
                    word
                ]()
            self.journal.note("obeyed", order=order)
        return True

    def _report(self, records: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Note the records by runs of offsets; the next offset of each partition."""
        found: dict[str, list[list[int]]] = {}
        for partition, offset in records:
            runs = found.setdefault(partition, [])
            if runs and runs[-1][1] == offset:
                runs[-1][1] = offset + 1
            else:
                runs.append([offset, offset + 1])
        for partition, runs in found.items():
            for first, after in runs:
                generation = self.library.generation
                self.journal.note("delivered", partition=partition, first=first, next=after, generation=generation)
        return {partition: runs[-1][1] for partition, runs in found.items()}

    def _commit(self, offsets: Offsets) -> None:
        try:
            self.library.commit(offsets)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is what the test wants to see
            self._committed(offsets, error)
        else:
            self._committed(offsets, None)

    def _committed(self, offsets: Offsets, error: Exception | None) -> None:
        if error is None:
            self.journal.note("committed", offsets=dict(offsets))
        else:
            self.journal.note("commit_failed", error=_said(error))

    def _read_orders(self) -> None:
        for line in sys.stdin:
            if line.strip() == "release":
                # Here: the loop that obeys the others is what is held.
                self._released.set()
                self.journal.note("obeyed", order="release")
            else:
                self._orders.put(line)
        os._exit(0)


def split_partition(partition: str) -> tuple[str, int]:
    """TOPIC-N as topic and number."""
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def main(library_name: str, words: list[str]) -> None:
    from tests.support import group_member_libraries as libraries

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
    faulthandler.register(signal.SIGUSR1)
    settings = dict(word.split("=", 1) for word in words)
    own = {name: settings.pop(name) for name in list(settings) if name.startswith("member.")}
    commit = own.get("member.commit", "sync")
    settings.setdefault("enable.auto.commit", "true" if commit == "auto" else "false")
    settings.setdefault("auto.offset.reset", "earliest")
    settings.setdefault("max.poll.records", str(BATCH_RECORDS))
    journal = Journal()
    topics = own["member.topics"].split(",") if "member.topics" in own else []
    library: Library = libraries.LIBRARIES[library_name](settings, topics, own.get("member.pattern"), journal)
    journal.generation_of = lambda: library.generation
    Member(library, journal, commit=commit, process_ms=int(own.get("member.process.ms", "0"))).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
