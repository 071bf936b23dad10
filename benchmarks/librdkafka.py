"""Load from librdkafka's own `rdkafka_performance`, built once from the source in the npm package node-rdkafka.

That one knows no TLS. For loads that ask for `security.protocol` it is linked with the library of confluent-kafka's
wheel, which does.
"""

import fcntl
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Protocol

PACKAGE = "node-rdkafka@3.6.1"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "librdkafka"
BUILD_TIMEOUT_S = 900
LOAD_TIMEOUT_S = 300
PRODUCED = re.compile(r"(\d+) delivered \(offset -?\d+, (\d+) failed\) in (\d+)ms: (\d+) msgs/s")
CONSUMED = re.compile(r"% (\d+) messages \(\d+ bytes\) consumed in (\d+)ms: (\d+) msgs/s")
# The producer is never to wait for its own queue.
QUEUE = {"queue.buffering.max.messages": "2000000", "queue.buffering.max.kbytes": "2097151"}
SECURE = "security.protocol="


class Reached(Protocol):
    """A broker, by one of its listeners."""

    @property
    def bootstrap(self) -> str: ...


class LoadFailedError(Exception):
    """The load generator failed, or not every message was delivered; the message holds its output."""


@dataclass(frozen=True)
class Produce:
    """What to produce: `properties` are librdkafka's; `rate` limits messages a second (0: as fast as it goes)."""

    messages: int
    size_bytes: int = 100
    acks: str = "1"
    codec: str = "none"
    rate: int = 0
    properties: Mapping[str, str] | None = None

    def arguments(self) -> list[str]:
        arguments = ["-P", "-s", str(self.size_bytes), "-c", str(self.messages), "-a", self.acks, "-z", self.codec]
        if self.rate:
            arguments += ["-r", str(self.rate)]
        for name, value in {**QUEUE, **(self.properties or {})}.items():
            arguments += ["-X", f"{name}={value}"]
        return arguments


@dataclass(frozen=True)
class Outcome:
    messages: int
    elapsed_s: float
    rate: float


def produce(server: Reached, topic: str, load: Produce, *, latencies: Path | None = None) -> Outcome:
    """Produce and wait for every delivery report; per-message latencies in microseconds go to a file if asked for."""
    with start_producer(server, topic, load, latencies=latencies) as generator:
        return finish_producer(generator, load)


def start_producer(
    server: Reached, topic: str, load: Produce, *, latencies: Path | None = None
) -> "subprocess.Popen[str]":
    extra = ["-l", "-A", str(latencies)] if latencies else []
    return _start([*load.arguments(), "-t", topic, "-b", server.bootstrap, "-q", *extra])


def finish_producer(generator: "subprocess.Popen[str]", load: Produce) -> Outcome:
    output = _finish(generator)
    found = PRODUCED.search(output)
    if found is None or int(found[1]) != load.messages or int(found[2]):
        raise LoadFailedError(f"not all of {load.messages} messages were delivered:\n{output[-3000:]}")
    return Outcome(int(found[1]), int(found[3]) / 1000, float(found[4]))


def produce_for(server: Reached, topic: str, load: Produce, seconds: float) -> Outcome:
    """Produce until the load is done or the seconds are over; what was delivered until then."""
    with start_producer(server, topic, load) as generator:
        try:
            generator.wait(seconds)
        except subprocess.TimeoutExpired:
            generator.send_signal(signal.SIGINT)
        output = _finish(generator)
    found = PRODUCED.search(output)
    if found is None or int(found[2]):
        raise LoadFailedError(f"messages failed:\n{output[-3000:]}")
    return Outcome(int(found[1]), int(found[3]) / 1000, float(found[4]))


def consume(
    server: Reached, topic: str, partitions: int, messages: int, *, properties: Mapping[str, str] | None = None
) -> Outcome:
    """Read so many messages from the start of all partitions; timed from the first message."""
    with start_consumer(server, topic, partitions, messages, properties=properties) as generator:
        return finish_consumer(generator, messages)


def start_consumer(
    server: Reached,
    topic: str,
    partitions: int,
    messages: int,
    *,
    offset: str = "beginning",
    latencies: Path | None = None,
    properties: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    arguments = ["-C", "-t", topic, "-o", offset, "-c", str(messages), "-b", server.bootstrap, "-q"]
    for partition in range(partitions):
        arguments += ["-p", str(partition)]
    for name, value in (properties or {}).items():
        arguments += ["-X", f"{name}={value}"]
    return _start(arguments + (["-l", "-A", str(latencies)] if latencies else []))


def finish_consumer(generator: "subprocess.Popen[str]", messages: int) -> Outcome:
    output = _finish(generator)
    found = CONSUMED.search(output)
    if found is None or int(found[1]) < messages:
        raise LoadFailedError(f"not all of {messages} messages were read:\n{output[-3000:]}")
    return Outcome(int(found[1]), int(found[2]) / 1000, float(found[3]))


def percentiles_ms(latencies: Path, shares: Sequence[float], *, skip: int = 0) -> list[float]:
    """Percentiles of a latency file (a line a message, microseconds), without the first ones of a new connection."""
    values = sorted(int(line) for line in latencies.read_text().splitlines()[skip:])
    if not values:
        raise LoadFailedError(f"no latencies in {latencies}")
    return [values[min(len(values) - 1, int(len(values) * share))] / 1000 for share in shares]


def build(*, with_tls: bool = False) -> Path:
    """The program's path; built on first use. Raises LoadFailedError with the compiler's output."""
    version = f"-confluent-{distribution('confluent-kafka').version}" if with_tls else ""
    program = CACHE / f"{PACKAGE.replace('@', '-')}{version}" / "rdkafka_performance"
    if program.exists():
        return program
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("a") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build_in(Path(scratch), program, with_tls)
    return program


def _build_in(scratch: Path, program: Path, with_tls: bool) -> None:
    _run(["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(scratch)], scratch)
    with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
        archive.extractall(scratch, filter="data")
    source = scratch / "package" / "deps" / "librdkafka"
    # npm does not keep the executable bit.
    for script in (source / "configure", *source.glob("mklove/**/*"), source / "lds-gen.py"):
        script.chmod(0o755)
    _run(["./configure", "--disable-ssl", "--disable-gssapi", "--disable-curl"], source)
    examples = source / "examples"
    program.parent.mkdir(parents=True, exist_ok=True)
    if with_tls:
        # Beside the program, which may be another environment's, too.
        library = shutil.copy2(_wheels_library(), program.parent)
        linked = [str(library), "-Wl,-rpath,$ORIGIN", "-lpthread", "-lm"]
        _run(["gcc", "-O2", "-I../src", "rdkafka_performance.c", "-o", "rdkafka_performance", *linked], examples)
    else:
        _run(["make", "-j2", "libs"], source)
        _run(["make", "-C", "examples", "rdkafka_performance"], source)
    built = program.with_suffix(".new")
    shutil.copy2(examples / "rdkafka_performance", built)
    built.rename(program)


def _wheels_library() -> Path:
    """The librdkafka that confluent-kafka's wheel has brought, with all kinds of security."""
    wheel = distribution("confluent-kafka")
    found = [file for file in wheel.files or () if file.name.startswith("librdkafka-")]
    if not found:
        raise LoadFailedError("confluent-kafka is not installed from a wheel, with a librdkafka of its own")
    return Path(str(wheel.locate_file(found[0]))).resolve()


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise LoadFailedError(f"{command[0]} is needed to build rdkafka_performance") from error
    if done.returncode != 0:
        raise LoadFailedError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def _start(arguments: list[str]) -> "subprocess.Popen[str]":
    program = build(with_tls=any(each.startswith(SECURE) for each in arguments))
    return subprocess.Popen(
        [str(program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(generator: "subprocess.Popen[str]") -> str:
    try:
        output, _ = generator.communicate(timeout=LOAD_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        generator.kill()
        output, _ = generator.communicate()
        raise LoadFailedError(f"the load took longer than {LOAD_TIMEOUT_S} s:\n{output[-3000:]}") from None
    # The program sets the other mode's properties, too, and is warned about each.
    return "".join(line for line in output.splitlines(keepends=True) if "CONFWARN" not in line)
