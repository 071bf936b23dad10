"""Compaction of 1 GiB of keyed records, a tenth of them live: how long it takes, and what a producer feels of it.

Done is what `cleaner-offset-checkpoint` says, a file both brokers write: the dirty part begins at the active segment.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from benchmarks import keyed, paced, topics
from benchmarks.contestants import Contestant
from benchmarks.row import CPU, Better, Goal, Measurement, Metric, OwnServerRow, Row, Scale
from tests.support.processes import CLOCK_TICKS_PER_SECOND, wait_until
from tests.support.server import RunningServer

COMPACTION = Metric("compaction_s", "until the dirty part is clean, s", Better.LESS)
LEFT = Metric("left_mib", "size afterwards, MiB", Better.LESS, 0)
PACE = Metric("pace", "batches of 100 records a second beside it", Better.MORE, 0)
KEPT = Metric("kept", "share of the pace that was kept", Better.MORE, 3)
P99_BEFORE = Metric("p99_before_ms", "producer's p99 without compaction, ms", Better.LESS, 3)
P99_BESIDE = Metric("p99_beside_ms", "producer's p99 beside compaction, ms", Better.LESS, 3)
P99_RATIO = Metric("p99_ratio", "p99 beside / without compaction", Better.LESS)
MIB = 1 << 20
SIZE_BYTES = 1 << 30
LIVE_SHARE = 0.1
SEGMENT_BYTES = 64 * MIB
TIMEOUT_S = 600.0
UNROLLED = {"segment.bytes": str((1 << 31) - 1)}
"""No roll, and no fsync of what a roll has closed, falls into one broker's window only; so a topic for each, too."""
FILLED = {"segment.bytes": str(SEGMENT_BYTES), "min.cleanable.dirty.ratio": "0.01"}


class CompactionRow(OwnServerRow):
    """A full topic becomes a compacted one; nothing else goes on."""

    name = "compaction"
    title = "compaction of 1 GiB of keyed 100 B, 10 % live"
    goals: tuple[Goal, ...] = (Goal(COMPACTION, 2.0),)

    def settings(self, contestant: Contestant) -> Mapping[str, str]:
        return {"log.cleaner.backoff.ms": "100"}

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        with topics.topic(server, 1, FILLED) as topic:
            keyed.produce_keyed(server, topic, _size_bytes(scale), LIVE_SHARE)
            before = _cpu_seconds(server)
            seconds = _compact(server, topic)
            return {
                COMPACTION: seconds,
                CPU: _cpu_seconds(server) - before,
                LEFT: sum(path.stat().st_size for path in _folder(server, topic).glob("*.log")) / MIB,
            }


class CompactionBesideProducerRow(CompactionRow):
    """The same while a producer works at half of what it reaches alone."""

    name = "compaction-beside"
    title = "compaction of 1 GiB beside a producer at half its best rate"
    goals = (Goal(KEPT, own=0.98), Goal(P99_BEFORE, 1.0), Goal(P99_BESIDE, 1.0), Goal(P99_RATIO, own=1.5))
    PROBE_S = 5.0
    BEFORE_S = 10.0

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        with (
            topics.topic(server, 1, FILLED) as topic,
            topics.topic(server, 1, UNROLLED) as probed,
            topics.topic(server, 1, UNROLLED) as first,
            topics.topic(server, 1, UNROLLED) as second,
        ):
            keyed.produce_keyed(server, topic, _size_bytes(scale), LIVE_SHARE)
            pace = paced.most_batches_a_second(server, probed, max(1.0, self.PROBE_S * scale.share)) / 2
            # A faster broker has left more for the disk: both begin either window with nothing to be written.
            os.sync()
            with paced.producing(server, first, pace) as alone:
                time.sleep(max(3.0, self.BEFORE_S * scale.share))
            os.sync()
            with paced.producing(server, second, pace) as beside:
                seconds = _compact(server, topic)
            before_ms, beside_ms = alone.percentile_ms(0.99), beside.percentile_ms(0.99)
            return {
                COMPACTION: seconds,
                PACE: beside.rate,
                KEPT: beside.rate / pace,
                P99_BEFORE: before_ms,
                P99_BESIDE: beside_ms,
                P99_RATIO: beside_ms / before_ms,
            }


def _size_bytes(scale: Scale) -> int:
    return max(3 * SEGMENT_BYTES, int(SIZE_BYTES * scale.share)) + SEGMENT_BYTES // 2


def _compact(server: RunningServer, topic: str) -> float:
    """Make the topic a compacted one; the seconds until all but the active segment is clean."""
    active = max(int(path.stem) for path in _folder(server, topic).glob("*.log"))
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 3})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    started_at = time.monotonic()
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    wait_until(lambda: _clean_until(server, topic) >= active, TIMEOUT_S, f"{topic} does not become clean")
    return time.monotonic() - started_at


def _clean_until(server: RunningServer, topic: str) -> int:
    checkpoint = server.directory / "data" / "cleaner-offset-checkpoint"
    if checkpoint.exists():
        for line in checkpoint.read_text().splitlines():
            if line.startswith(f"{topic} 0 "):
                return int(line.rpartition(" ")[2])
    return 0


def _folder(server: RunningServer, topic: str) -> Path:
    return server.directory / "data" / f"{topic}-0"


def _cpu_seconds(server: RunningServer) -> float:
    """The broker's and its children's, also of those that have ended."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [pid, *(int(child) for path in children for child in path.read_text().split())]
    ticks = 0
    for each in pids:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / CLOCK_TICKS_PER_SECOND


OWN_ROWS: tuple[Row, ...] = (CompactionRow(), CompactionBesideProducerRow())
