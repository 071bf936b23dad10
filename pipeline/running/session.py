"""Spark for a job: its JVM, what it says (into a file, not onto the terminal), and the session."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kavka.pipeline.secret_references import SECRET_WORDS, references, resolved_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # What Spark shows of a plan's and a session's options, besides what it hides by itself.
    "spark.sql.redaction.options.regex": f"(?i)url|{SECRET_WORDS}",
    "spark.redaction.regex": f"(?i){SECRET_WORDS}",
}
LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Two hundred, Spark's own, are two hundred tasks for each batch that is counted.
    "spark.sql.shuffle.partitions": "2",
}


class SessionError(Exception):
    """Spark does not start: one line."""


class Jvm:
    """The process that Spark runs in. What it and its workers print goes to `log`; None: to standard error."""

    def __init__(self, settings: Mapping[str, str], python_path: tuple[Path, ...], log: Path | None) -> None:
        """Settings with references wait until the process is there: its command line is for everybody to read.

        Starts the process, which does not notice the terminal's Ctrl-C. Raises SessionError.
        """
        from pyspark import SparkConf
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        local = LOCAL_DEFAULTS if settings["spark.master"].startswith("local") else {}
        path = os.pathsep.join([*map(str, python_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._settings = {**DEFAULTS, **local, "spark.executorEnv.PYTHONPATH": path, **settings}
        self._secret = {name for name, value in self._settings.items() if any(references(value))}
        plain = SparkConf(loadDefaults=False)
        for name, value in self._settings.items():
            if name not in self._secret:
                plain.set(name, value)
        with _output(log) as (out, error):
            try:
                launch: Callable[..., Any] = launch_gateway
                self.gateway: Any = launch(plain, _Process(stdout=out, stderr=error))
            except (PySparkRuntimeError, OSError) as failure:
                where = "" if log is None else f"; {log} says why"
                raise SessionError(f"Spark's Java does not start: Java 17 or newer is needed{where}") from failure

    def session(self) -> "SparkSession":
        """A session of its own. Raises SessionError, SecretError."""
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        SparkContext._ensure_initialized(gateway=self.gateway)
        conf = SparkConf()
        secrets = {name: self._settings[name] for name in self._secret}
        for name, value in {**self._settings, **resolved_settings(secrets)}.items():
            conf.set(name, value)
        try:
            return SparkSession(SparkContext.getOrCreate(conf))
        except Exception as error:
            from kavka.pipeline.running.causes import cause

            raise SessionError(f"Spark does not start: {cause(error)}") from error

    def close(self) -> None:
        """End the process, and wait for it."""
        from pyspark import SparkContext

        with SparkContext._lock:
            SparkContext._gateway = SparkContext._jvm = None
        self.gateway.shutdown()
        process = self.gateway.proc
        if process.stdin is not None:
            process.stdin.close()  # by which it ends
        process.wait()


class _Process(dict[str, Any]):
    """What Popen is given by `launch_gateway`, which sets what the child runs first, and its environment.

    Signals are unblocked there: what blocks them here would block them in Spark's processes, which end their workers by
    signals. Here they stay blocked: one that comes while Java starts is for whoever waits for it. And Java names files
    by the locale: in that of C a folder of an umlaut cannot be made.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "preexec_fn":
            value = partial(_run_unblocked, value)
        elif name == "env":
            value = _of_utf8(value)
        super().__setitem__(name, value)


def _of_utf8(environment: Mapping[str, str]) -> Mapping[str, str]:
    chosen = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "C")
    return {**environment, "LC_ALL": "C.UTF-8"} if chosen in ("C", "POSIX") else environment


def _run_unblocked(first: Callable[[], object]) -> None:
    first()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextmanager
def _output(log: Path | None) -> Iterator[tuple[IO[Any] | None, IO[Any] | None]]:
    if log is None:
        # Standard output is the command's own.
        yield sys.stderr, None
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        yield file, file
