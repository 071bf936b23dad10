"""`kavka broker --ephemeral`: a broker for tests in any language, which lives as long as its standard input is open.

It prints one line, {"bootstrap_servers": "127.0.0.1:40123", "pid": 4711}, when it serves; with several listeners also
where each is, "listeners": {"SASL_SSL": ...}, and with `kavka.faults.enable=true` where faults are asked for: "faults":
{"url": ..., "token": ...}. Whoever started it need do nothing at the end: when that process is gone, so is the other
end of the standard input. Nothing is left of it then, unless it was itself killed by SIGKILL; then its directory is,
below the system's folder for temporary files.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics import log_lines
from kavka.broker.stop_signals import StopSignals

if TYPE_CHECKING:
    from kavka.testing.served import Served

LEVEL_VARIABLE: Final = "KAVKA_LOG_LEVEL"
EXIT_FAILED: Final = 1
_READ_BYTES: Final = 4096


def run(overrides: Sequence[str], brokers: int = 1) -> int:
    """Serve until the end of standard input, SIGTERM or SIGINT. The exit code: 1 if it could not start, or died."""
    signals = StopSignals()
    signals.start()
    try:
        log_lines.configure(os.environ.get(LEVEL_VARIABLE, "WARN"))
    except ValueError as failure:
        return _refused(f"{LEVEL_VARIABLE}: {failure}")
    threading.Thread(target=_await_end_of_input, args=(signals.request,), name="standard-input", daemon=True).start()
    from kavka.broker.server import StartError
    from kavka.config.errors import ConfigError
    from kavka.testing.broker import Broker
    from kavka.testing.cluster import Cluster

    try:
        settings = _settings(overrides)
        made = (
            Broker(settings, on_fatal=signals.request)
            if brokers == 1
            else Cluster(brokers, settings, on_fatal=signals.request)
        )
        with made as served:
            print(json.dumps(_described(served)), flush=True)
            signals.wait()
            served.check()
    except AssertionError as died:
        return _refused(str(died))
    except (StartError, ConfigError, OSError, ValueError) as failure:
        return _refused(str(failure))
    signals.stopped()
    return 0


def _described(served: "Served") -> dict[str, object]:
    found: dict[str, object] = {"bootstrap_servers": served.bootstrap_servers, "pid": os.getpid()}
    if len(served.listeners) > 1:
        found["listeners"] = {name: served.bootstrap_at(name) for name in served.listeners}
    if (door := served.faults_door) is not None:
        found["faults"] = {"url": door.url, "token": door.token}
    return found


def _settings(overrides: Sequence[str]) -> dict[str, str]:
    """Raises ValueError."""
    settings = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--override {override}: NAME=VALUE is expected")
        settings[name.strip()] = value
    return settings


def _await_end_of_input(request: Callable[[], None]) -> None:
    """Whatever comes in is read and forgotten. Not by `sys.stdin`, whose lock would hold up the process's end."""
    try:
        while os.read(0, _READ_BYTES):
            pass
    except OSError:
        # There is none: as if it had ended.
        pass
    request()


def _refused(why: str) -> int:
    print("kavka broker --ephemeral:", " ".join(why.split()), file=sys.stderr)
    return EXIT_FAILED
