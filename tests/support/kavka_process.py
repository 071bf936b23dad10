"""A real `kavka broker` process on an ephemeral port, in a directory of its own."""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes import Process
from tests.support.server import KEPT, ComplaintError, RunningServer

SERVING = r'msg="?serving"?.*?listeners=(?:[A-Z_0-9]+://)?(?P<host>[^:\s,]+):(?P<port>\d+)'
METRICS = r"metrics\.port=(?P<port>\d+)"
COMPLAINT = re.compile(
    r"^.*\blevel=(?:ERROR|CRITICAL)\b.*|^(?:Traceback \(|Exception (?:in thread|ignored in)|Fatal Python error).*",
    re.MULTILINE,
)
START_TIMEOUT_S = 120.0
KAVKA = Path(sys.executable).with_name("kavka")
WITH_BYTECODE = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(__file__).resolve().parents[2] / ".cache" / "bytecode"),
}
"""As an installed Kavka has it: else each start would compile it all, where whoever runs the tests writes none."""


class KavkaProcess(RunningServer):
    """`with KavkaProcess(tmp_path) as broker:` serves at `broker.bootstrap`, data in `directory/data`.

    A restart keeps its port, so that clients find it again. When it is stopped or killed, its log must hold no line of
    level ERROR or above but those announced (`expect_errors`), and if nobody killed it its exit code must be
    `expected_exit_code`; else ComplaintError.
    """

    name = "kavka"

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        expected_errors: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.overrides = dict(overrides or {})
        self.port = 0
        self.expected_exit_code = 0
        self._expected_errors = list(expected_errors)
        self._env = dict(env or {})

    @property
    def log_dir(self) -> Path:
        return self.directory / "data"

    @property
    def metrics_port(self) -> int:
        """Where /metrics is served; needs the override metrics.port=0."""
        return int(self.process.wait_for_log(METRICS, START_TIMEOUT_S)["port"])

    def start(self) -> float:
        self.directory.mkdir(parents=True, exist_ok=True)
        started_at = time.monotonic()
        # Not inherited from whoever runs the tests: KAFKA_* would be settings.
        env = {name: "" for name in os.environ if name.startswith("KAFKA_")} | self._env
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            env |= WITH_BYTECODE
        self._process = Process(self.command(), self.directory / "kavka.log", env=env)
        try:
            served = self._process.wait_for_log(SERVING, START_TIMEOUT_S)
            self.host, self.port = served["host"], int(served["port"])
            return self.wait_until_ready(started_at, START_TIMEOUT_S)
        except BaseException:
            self.kill()
            raise

    def expect_errors(self, *patterns: str) -> None:
        """From now on, and in what this run has logged already, errors that one of these is found in are expected."""
        self._expected_errors += patterns

    def stop(self) -> None:
        ended = self._process
        super().stop()
        if ended is not None:
            self._look_back(ended)

    def kill(self) -> None:
        ended = self._process
        super().kill()
        if ended is not None:
            self._look_back(ended)

    def _look_back(self, ended: Process) -> None:
        """Whether a run that is over was as it should be. Raises ComplaintError."""
        complaints = [
            line
            for line in COMPLAINT.findall(ended.log_text())
            if not any(re.search(pattern, line) for pattern in self._expected_errors)
        ]
        if not ended.was_killed and ended.exit_code != self.expected_exit_code:
            complaints.append(f"it ended with {ended.exit_code} instead of {self.expected_exit_code}")
        if complaints:
            raise ComplaintError("\n".join([f"unexpected in {ended.log}:", *complaints]))

    def command(self) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_dir),
            **KEPT,
            **self.overrides,
        }
        command = [str(KAVKA), "broker"]
        for name, value in settings.items():
            command += ["--override", f"{name}={value}"]
        return command
