"""A ZooKeeper and three brokers on this machine, for trying; Ctrl-C stops all of them in order.

    make cluster

The brokers' settings are config/server-1.properties and the like, ZooKeeper's config/zookeeper.properties; their logs
lie beside their data in /tmp/kavka-cluster. ZooKeeper is a Java program. Its jars are those of the pyspark package
(`.venv/bin/python -m pip install pyspark`), or of Kafka 3.9 where `make test` has kept them, or in ZOOKEEPER_CLASSPATH
('/opt/kafka_2.13-3.9.2/libs/*').

A broker that was killed is started again by `.venv/bin/kavka broker config/server-2.properties`.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"
START_TIMEOUT_S = 120.0


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        start_zookeeper(stack)
        brokers = [start_broker(file, stack) for file in sorted(CONFIG.glob("server-*.properties"))]
        print("bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094", flush=True)
        for broker in brokers:
            broker.wait()


def start_zookeeper(stack: contextlib.ExitStack) -> None:
    file = CONFIG / "zookeeper.properties"
    settings = settings_of(file)
    port = int(settings["clientPort"])
    if accepts(port):
        give_up(f"something listens at port {port} already")
    if shutil.which("java") is None:
        give_up("ZooKeeper is a Java program, and there is no java (Debian: apt-get install openjdk-17-jre-headless)")
    directory = Path(settings["dataDir"])
    command = ["java", "-Xmx256m", "-cp", zookeeper_classpath(), ZOOKEEPER, str(file)]
    started = start(command, directory.with_name("zookeeper.log"), stack)
    wait_for(started, lambda: accepts(port), directory.with_name("zookeeper.log"))
    print(f"zookeeper at 127.0.0.1:{port}, pid {started.pid}", flush=True)


def zookeeper_classpath() -> str:
    """The jars that there are; ends the program where there are none."""
    given = os.environ.get("ZOOKEEPER_CLASSPATH")
    if given:
        return given
    found = importlib.util.find_spec("pyspark")
    candidates = [Path(found.origin).parent / "jars"] if found is not None and found.origin is not None else []
    candidates.append(ROOT / ".cache" / "jars" / "kafka-3.9")
    for folder in candidates:
        if any(folder.glob("zookeeper-3*.jar")):
            return str(folder / "*")
    return give_up(
        "no ZooKeeper is here: .venv/bin/python -m pip install pyspark, or ZOOKEEPER_CLASSPATH='KAFKA/libs/*'"
    )


def start_broker(file: Path, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    """Start a broker and wait until it leads or follows all that it is to."""
    settings = settings_of(file)
    log = Path(settings["log.dirs"] + ".log")
    command = [str(Path(sys.executable).with_name("kavka")), "broker", str(file)]
    started = start(command, log, stack)
    wait_for(started, lambda: is_ready(int(settings["metrics.port"])), log)
    print(f"broker {settings['broker.id']} at {settings['listeners']}, pid {started.pid}, log {log}", flush=True)
    return started


def start(command: list[str], log: Path, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C reaches this program alone: ZooKeeper has to outlive the brokers."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    stack.callback(stop, started)
    return started


def stop(process: subprocess.Popen[bytes]) -> None:
    print(f"stopping pid {process.pid}", flush=True)
    process.terminate()
    process.wait()


def wait_for(process: subprocess.Popen[bytes], is_up: Callable[[], bool], log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not is_up():
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().rpartition("\n")[2]
            give_up(f"{process.args!r} ended with {process.returncode}: {last} ({log})")
        if time.monotonic() > deadline_s:
            give_up(f"not up after {START_TIMEOUT_S:.0f} s: {log}")
        time.sleep(0.1)


def is_ready(metrics_port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def settings_of(file: Path) -> Mapping[str, str]:
    return dict(re.findall(r"^([\w.]+)=(.*)$", file.read_text(), re.MULTILINE))


def give_up(why: str) -> NoReturn:
    raise SystemExit(f"cluster: {why}")


if __name__ == "__main__":
    main()
