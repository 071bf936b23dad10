"""The containers of docker-compose.yml, by Docker or by podman, under a project name of their own."""

import json
import secrets
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.support.processes import wait_until

REPOSITORY: Final = Path(__file__).resolve().parents[2]
BASE_IMAGES: Final = ("python:3.11-slim-bookworm", "zookeeper:3.8")
BUILD_TIMEOUT_S: Final = 1200.0
TIMEOUT_S: Final = 180.0
PROBE: Final = "import urllib.request as u; u.urlopen('http://localhost:9404/readyz', timeout=4)"


class Compose:
    """`with Compose() as containers:` has all services without a profile built and started. Owned by one thread.

    At the end everything of this project goes, volumes too; other projects of the same file are left alone.
    """

    def __init__(self) -> None:
        self.engine, self._compose = _engine()
        self._project = f"kavka-test-{secrets.token_hex(4)}"

    def __enter__(self) -> Self:
        for image in BASE_IMAGES:
            if _run([self.engine, "image", "inspect", image]).returncode != 0:
                pulled = _run([self.engine, "pull", image])
                if pulled.returncode != 0:
                    pytest.skip(f"the image {image} is not here and cannot be pulled: {pulled.stderr.strip()[-200:]}")
        try:
            self._do("build")
            self._do("up", "--detach")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for service in ("zookeeper", "broker-1", "broker-2", "broker-3"):
                error.add_note(f"{service}:\n{self.log(service)[-2000:]}")
        self._do("down", "--volumes")

    def wait_until_ready(self, *services: str) -> None:
        """Until /readyz of each answers 200 inside its container."""
        for service in services:
            wait_until(partial(self._is_ready, service), TIMEOUT_S, f"{service} is not ready")

    def kill(self, service: str) -> None:
        """kill -9."""
        self._engine_do("kill", "--signal", "KILL", self._id(service))

    def start(self, service: str) -> None:
        self._engine_do("start", self._id(service))

    def stop(self, service: str) -> int:
        """By SIGTERM; the exit code."""
        container = self._id(service)
        self._engine_do("stop", "--time", str(int(TIMEOUT_S)), container)
        (found,) = json.loads(self._engine_do("inspect", container))
        return int(found["State"]["ExitCode"])

    def user_of(self, service: str) -> str:
        """The user id that its processes have."""
        return self._engine_do("exec", self._id(service), "id", "-u").strip()

    def log(self, service: str) -> str:
        """What it wrote, of all its starts."""
        done = _run([self.engine, "logs", self._id(service)])
        return done.stdout + done.stderr

    def _is_ready(self, service: str) -> bool:
        return _run([self.engine, "exec", self._id(service), "python", "-c", PROBE]).returncode == 0

    def _id(self, service: str) -> str:
        labels = {"project": self._project, "service": service}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        return self._engine_do("ps", "--all", "--quiet", *filters).strip()

    def _engine_do(self, *arguments: str) -> str:
        done = _run([self.engine, *arguments])
        assert done.returncode == 0, f"{self.engine} {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def _do(self, *arguments: str) -> None:
        command = [*self._compose, "--project-name", self._project, "--file", "docker-compose.yml", *arguments]
        done = _run(command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"


def _engine() -> tuple[str, list[str]]:
    """What runs containers, and what runs a compose file; the test is skipped where that is missing."""
    if shutil.which("docker") is not None and _run(["docker", "compose", "version"]).returncode == 0:
        return "docker", ["docker", "compose"]
    if shutil.which("podman") is not None and shutil.which("podman-compose") is not None:
        return "podman", ["podman-compose"]
    pytest.skip("no containers here: install Docker with its Compose plugin, or podman and podman-compose")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
