"""One broker of the chaos program's cluster: a process to be killed, frozen, starved of disk and misled in time."""

import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.chaos.history import Place
from tests.chaos.rigged_broker import DIRECTORIES, Rig
from tests.support.kavka_process import COMPLAINT, WITH_BYTECODE
from tests.support.processes import Process, free_port
from tests.support.producing import REPOSITORY

HOST: Final = "127.0.0.1"
EXPECTED_EXITS: Final = (0, 1)
"""1: ZooKeeper was out of reach when it started, or its disk was full. It is started again, as systemd would."""


class ChaosBroker:
    """`spawn` starts it and waits for nothing. After any end `spawn` serves the same data on the same ports.

    Owned by one thread.
    """

    def __init__(self, directory: Path, broker_id: int) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self.host, self.port, self.inner_port = HOST, free_port(), free_port()
        self.directory = directory / self.name
        self.settings: dict[str, str] = {}
        self.is_frozen = False
        self.ends: list[tuple[int, str]] = []
        """Exit codes where it ended by itself, or by SIGTERM in an unexpected way; each with its log's last lines."""
        self._process: Process | None = None
        self._looked_at = 0
        self.directory.mkdir(parents=True, exist_ok=True)
        self._rig = Rig(self._rig_file)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def log_dirs(self) -> list[Path]:
        return [self.directory / f"data-{number}" for number in range(DIRECTORIES)]

    def folders_of(self, place: Place) -> list[Path]:
        """Where the partition's log lies: one folder, but in the last step of a move."""
        return [folder for each in self.log_dirs if (folder := each / f"{place[0]}-{place[1]}").exists()]

    @property
    def copies(self) -> list[Path]:
        """Of logs that move to the other directory, on the disk."""
        return [folder for each in self.log_dirs for folder in each.glob("*-future")]

    @property
    def _log_dirs_text(self) -> str:
        return ",".join(map(str, self.log_dirs))

    @property
    def _rig_file(self) -> Path:
        return self.directory / "rig"

    @property
    def is_running(self) -> bool:
        """Looks whether it has ended by itself, too."""
        if self._process is not None and self._process.exit_code is not None:
            self._note_end(self._process)
            self._process = None
        return self._process is not None

    @property
    def can_answer(self) -> bool:
        return self.is_running and not self.is_frozen

    def configure(self, settings: Mapping[str, str]) -> None:
        """Before the first `spawn`."""
        self.settings = {"broker.id": str(self.broker_id), "log.dirs": self._log_dirs_text, **settings}

    def spawn(self) -> None:
        """Start it, unless it runs."""
        if self.is_running:
            return
        command = [
            sys.executable,
            "-m",
            "tests.chaos.rigged_broker",
            str(self._rig_file),
            self._log_dirs_text,
            "broker",
        ]
        for name, value in self.settings.items():
            command += ["--override", f"{name}={value}"]
        env = {name: "" for name in os.environ if name.startswith("KAFKA_")} | {"PYTHONPATH": str(REPOSITORY)}
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            env |= WITH_BYTECODE
        self._process = Process(command, self.directory / "kavka.log", env=env)
        self.is_frozen = False

    def kill(self) -> None:
        """kill -9, frozen or not."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        self.is_frozen = False

    def terminate(self, timeout_s: float) -> None:
        """SIGTERM, and wait for its end."""
        if (process := self._process) is not None:
            code = process.stop(timeout_s)
            # One that has only just begun to start does not listen to signals yet, and dies of it as any program does.
            if code != 0 and (code != -signal.SIGTERM or process.log_text().strip()):
                self._note_end(process)
            self._process = None

    def freeze(self) -> None:
        if self.is_running and self._process is not None:
            os.kill(self._process.pid, signal.SIGSTOP)
            self.is_frozen = True

    def thaw(self) -> None:
        if self._process is not None and self.is_frozen:
            os.kill(self._process.pid, signal.SIGCONT)
        self.is_frozen = False

    def shift_clock(self, seconds: float) -> None:
        """Its wall clock is ahead by so much from now on, over restarts too."""
        self._rig.shift_ns = int(seconds * 1e9)

    def break_disk(self, index: int, error: int) -> None:
        """From now on, over restarts too, that log directory is refused with this errno; 0: it works again.

        EIO: all of it; another one (EROFS): what would change it.
        """
        self._rig.set_disk_error(index, error)

    def logged(self, pattern: str) -> int:
        """How often that is in all that it has logged."""
        return len(re.findall(pattern, self._log_text()))

    def limit_files(self, size_bytes: int | None) -> None:
        """From now on no file of this process grows beyond that: a write is cut short, the next fails (EFBIG).

        As a full disk does, but that what the process writes below the limit still succeeds. None: no limit any more.
        """
        if self.is_running and self._process is not None:
            _, hard = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)
            soft = hard if size_bytes is None else size_bytes
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def longest_file_bytes(self) -> int:
        """Of the logs' files."""
        sizes = [path.stat().st_size for each in self.log_dirs for path in each.glob("*/*.log")]
        return max(sizes, default=0)

    def complaints(self, expected: Sequence[str]) -> list[str]:
        """Errors in what it has logged since the last look but those in which one of these patterns is found."""
        text = self._log_text()
        lines = text[self._looked_at : text.rfind("\n") + 1]
        self._looked_at += len(lines)
        return [
            f"{self.name}: {line}"
            for line in COMPLAINT.findall(lines)
            if not any(re.search(pattern, line) for pattern in expected)
        ]

    def _log_text(self) -> str:
        log = self.directory / "kavka.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def _note_end(self, process: Process) -> None:
        last = process.log_text().strip().splitlines()[-3:]
        code = process.exit_code
        assert code is not None
        self.ends.append((code, f"{self.name} ended with {code}: {' | '.join(last)}"))
