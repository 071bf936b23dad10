"""The daemon's entry point: the only code that changes the process it runs in.

Signals are blocked in every thread and waited for here, so that no handler ever interrupts anything: the first
SIGTERM or SIGINT stops the broker in order, the second one at once.
"""

import gc
import logging
import os
import resource
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

from kavka.broker import log_lines

if TYPE_CHECKING:
    from kavka.broker.server import Broker

SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})
SWITCH_INTERVAL_S: Final = 0.0005
GC_THRESHOLDS: Final = (50_000, 20, 100)
EXIT_FAILED: Final = 1
EXIT_FORCED: Final = 130

log = logging.getLogger(__name__)


def run(config_path: str | None, overrides: list[str]) -> int:
    """Run a broker until it is told to stop.

    The exit code: 0 after a stop in order, 1 when it could not start or could not go on.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    log_lines.configure(os.environ.get("KAVKA_LOG_LEVEL", "INFO"))
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.defaults import costly_settings
    from kavka.config.errors import ConfigError

    try:
        loaded = BrokerConfig.load(config_path, overrides, os.environ)
    except (ConfigError, OSError, UnicodeDecodeError) as failure:
        print(f"kavka: {failure}", file=sys.stderr)
        return EXIT_FAILED
    if loaded.ignored:
        names = ",".join(name for name, _ in loaded.ignored)
        log.info("settings that Kavka has no use for are ignored names=%s", names)
    for name in loaded.unknown:
        log.warning("unknown setting name=%s", name)
    for line in costly_settings(loaded.config):
        log.info(line)
    _prepare_process()
    from kavka.broker.server import Broker, StartError

    broker = Broker(loaded.config, on_fatal=_stop_this_process)
    try:
        broker.start()
    except StartError as failure:
        print(f"kavka: {failure}", file=sys.stderr)
        return EXIT_FAILED
    # What has been loaded stays for good: full collections need not look at it again.
    gc.collect()
    gc.freeze()
    log.info(
        "serving listeners=%s broker.id=%d took_ms=%d", broker.endpoints_text(), broker.broker_id, _process_age_ms()
    )
    return _wait_and_stop(broker)


def _prepare_process() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _wait_and_stop(broker: "Broker") -> int:
    received = signal.sigwait(SIGNALS)
    if broker.fatal_reason is None:
        log.info("stopping signal=%s", signal.Signals(received).name)
    else:
        log.error("stopping reason=%r", broker.fatal_reason)
    stopper = threading.Thread(target=broker.stop, name="stop", daemon=True)
    stopper.start()
    while stopper.is_alive():
        if signal.sigtimedwait(SIGNALS, 0.05) is not None:
            log.warning("second signal: stopping at once; the next start recovers the logs")
            logging.shutdown()
            os._exit(EXIT_FORCED)
    log.info("stopped")
    return 0 if broker.fatal_reason is None else EXIT_FAILED


def _stop_this_process() -> None:
    """Called by any thread of the broker when it cannot go on: as if a signal had come."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _process_age_ms() -> int:
    """How long ago this process was started, interpreter and imports included."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        started_ticks = int(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime", encoding="ascii") as uptime:
        uptime_s = float(uptime.read().split()[0])
    return int((uptime_s - started_ticks / os.sysconf("SC_CLK_TCK")) * 1000)
