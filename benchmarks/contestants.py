"""The brokers that are compared, each with a shared instance that stays warm and fresh ones for rows that need them."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.support.kafka_process import KAFKAS_JVM, KRaftKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer

# The same on both sides: deleted topics give their space back while the benchmark goes on.
SETTINGS = {
    "log.segment.delete.delay.ms": "1000",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
}
# Kafka 4.3 puts off the assignments of new groups for a second, to make fewer; here it makes them at once, as before.
KAFKA_SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
KAFKA_HEAP = "1g"
# An interpreter has no compiler to warm; this fills its caches of connections, pages and compiled codecs.
KAVKA_WARM_SHARE = 0.1


class Contestant:
    """One kind of broker. `shared` is started when first asked for and lives until `release`."""

    name: str
    version: str
    warm_share = 1.0
    """Of the time that brokers are warmed for."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.settings = {**SETTINGS, **(settings or {})}
        self._shared: RunningServer | None = None
        self._numbers = count(1)

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        raise NotImplementedError

    @property
    def shared(self) -> RunningServer:
        """The instance that rows share; one that died under a row is replaced for the next."""
        if self._shared is not None and self._shared.process.exit_code is not None:
            self.release()
        if self._shared is None:
            server = self.fresh()
            server.start()
            self._shared = server
        return self._shared

    def fresh(self, settings: Mapping[str, str] | None = None) -> RunningServer:
        """A server that was never started, in an empty directory of its own. The caller stops it (see `remove`)."""
        directory = self.directory / f"{self.name}-{next(self._numbers)}"
        shutil.rmtree(directory, ignore_errors=True)
        return self.create(directory, {**self.settings, **(settings or {})})

    @contextmanager
    def running(self, settings: Mapping[str, str] | None = None) -> Iterator[RunningServer]:
        """A fresh server, started, and removed with its data afterwards."""
        server = self.fresh(settings)
        try:
            server.start()
            yield server
        finally:
            self.remove(server)

    def remove(self, server: RunningServer) -> None:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)

    def release(self) -> None:
        if self._shared is not None:
            self.remove(self._shared)
            self._shared = None


class Kavka(Contestant):
    name = "kavka"
    warm_share = KAVKA_WARM_SHARE

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return KavkaProcess(directory, settings)


class ApacheKafka(Contestant):
    name = "kafka"

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return KRaftKafka(directory, {**KAFKA_SETTINGS, **settings}, heap=KAFKA_HEAP, jvm=KAFKAS_JVM)
