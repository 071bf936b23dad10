"""The daemon's entry point: the only code that changes the process it runs in.

What each signal does is said in `stop_signals.py`.
"""

import gc
import logging
import os
import resource
import sys
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics import log_lines
from kavka.broker.stop_signals import StopSignals

if TYPE_CHECKING:
    from kavka.broker.faults.bouncing_broker import BouncingBroker
    from kavka.broker.server import Broker

SWITCH_INTERVAL_S: Final = 0.0005
GC_THRESHOLDS: Final = (50_000, 20, 100)
EXIT_FAILED: Final = 1
LEVEL_VARIABLE: Final = "KAVKA_LOG_LEVEL"

log = logging.getLogger(__name__)


def run(config_path: str | None, overrides: list[str]) -> int:
    """Run a broker until it is told to stop.

    The exit code: 0 after a stop in order, 1 when it could not start or could not go on.
    """
    signals = StopSignals()
    signals.start()
    try:
        log_lines.configure(os.environ.get(LEVEL_VARIABLE, ""))
    except ValueError as failure:
        return _refused(f"{LEVEL_VARIABLE}: {failure}")
    from kavka.config.costly import costly_settings
    from kavka.config.errors import ConfigError
    from kavka.config.promises import check_promises
    from kavka.config.sources import load_config, nearest

    try:
        loaded = load_config(config_path, overrides, os.environ)
        check_promises(loaded.config)
    except (ConfigError, OSError, UnicodeDecodeError) as failure:
        return _refused(str(failure))
    for name, reason in loaded.without_effect:
        log.warning("setting has no effect name=%s reason=%r", name, reason)
    for name in loaded.unknown:
        meant = nearest(name)
        log.warning("unknown setting name=%s%s", name, f" nearest={meant}" if meant is not None else "")
    for line in costly_settings(loaded.config):
        log.info(line)
    _prepare_process()
    try:
        from kavka.broker.server import Broker, StartError
    except ImportError as failure:
        if (failure.name or "kavka").partition(".")[0] == "kavka":
            raise
        return _refused(f"the installation is incomplete: {failure}")

    broker: Broker | BouncingBroker
    if loaded.config.kavka_faults_enable:
        from kavka.broker.faults import bouncing_broker

        broker = bouncing_broker.BouncingBroker(loaded.config, on_fatal=signals.request)
    else:
        broker = Broker(loaded.config, on_fatal=signals.request)
    try:
        broker.start()
    except StartError as failure:
        return _refused(str(failure))
    # What has been loaded stays for good: full collections need not look at it again.
    gc.collect()
    gc.freeze()
    log.info(
        "serving listeners=%s broker.id=%d took_ms=%d", broker.endpoints_text(), broker.broker_id, _process_age_ms()
    )
    signals.on_hang_up = broker.hang_up
    return _wait_and_stop(broker, signals)


def _prepare_process() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _refused(why: str) -> int:
    """Tell the operator, on one line, what keeps the broker from starting."""
    print("kavka:", " ".join(why.split()), file=sys.stderr)
    return EXIT_FAILED


def _wait_and_stop(broker: "Broker | BouncingBroker", signals: StopSignals) -> int:
    signals.wait()
    if broker.fatal_reason is None:
        log.info("stopping signal=%s", signals.received)
    else:
        log.error("stopping reason=%r", broker.fatal_reason)
    broker.stop()
    signals.stopped()
    log.info("stopped")
    return 0 if broker.fatal_reason is None else EXIT_FAILED


def _process_age_ms() -> int:
    """How long ago this process was started, interpreter and imports included."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        started_ticks = int(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime", encoding="ascii") as uptime:
        uptime_s = float(uptime.read().split()[0])
    return int((uptime_s - started_ticks / os.sysconf("SC_CLK_TCK")) * 1000)
