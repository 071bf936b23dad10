"""`python -m tests.chaos.run [--seconds 1800] [--seed N] [--directory DIR] [--faults NAME ...]`: what a cluster must
keep under faults.

Rounds: some faults strike, overlap and are mended; then all must be well again, and every client get through. In the
end what clients noted is held against what the topics hold, and replicas against one another. Exit code 1, with the
seed, if anything is wrong.
"""

import argparse
import contextlib
import errno
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from tests.chaos.brokers import EXPECTED_EXITS
from tests.chaos.checker import contradictions
from tests.chaos.faults import ALL, Fault, Struck, deal, move_logs, roll
from tests.chaos.history import History
from tests.chaos.load import ClientFailureError, Load, create_topics, read_end
from tests.chaos.replicas import differences, unmoved
from tests.chaos.stage import Stage
from tests.support.processes import let_pass

WELL_S: Final = 300.0
"""Of a machine that is slow and busy. What has no end fails all the same."""
MOST_AT_ONCE: Final = 3
ROUNDS_TO_ROLL: Final = 4
MOVES_SHARE: Final = 0.7
"""Of the rounds, in which logs are on the way to another directory while the faults strike."""
MOST_ILLS: Final = 3
SECONDS: Final = 1800.0
EXPECTED_ERRORS: Final = (
    *(rf"\[Errno {number}\]|{os.strerror(number)}" for number in (errno.EFBIG, errno.EIO, errno.EROFS)),
    "the disk is full",
)
"""What brokers may log as errors: those of a disk that is full, broken, or read-only."""
EXPECTED_OF_BROKEN_DISKS: Final = (
    "no log directory is (left|online)",
    r"cannot host \d+ replicas",
    "may lie in a directory that is offline",
    "KAFKA_STORAGE_ERROR",
)
"""What these lead to, in a round in which one broke or was full, and in no other."""

MOVED, WENT_OFFLINE = 'msg="moved"', "goes offline"
ENDING: Final = (signal.SIGTERM, signal.SIGINT)

Say = Callable[[str], None]


def chaos(directory: Path, seed: int, seconds: float, say: Say, faults: Sequence[Fault] = ALL) -> list[str]:
    """Run it with these faults, and say how it goes on; all that is wrong."""
    dice = random.Random(seed)
    history = History()
    found: list[str] = []
    with Stage(directory) as stage:
        create_topics(stage)
        with Load(stage.bootstrap, history, dice) as load:
            try:
                load.wait_for_progress()
                _strike(stage, load, deal(dice, faults), dice, seconds, say, found)
                say("all is over; what is left gets through")
                load.finish()
                end = read_end(stage.bootstrap)
            except (TimeoutError, ClientFailureError) as failure:
                return [*history.surprises, str(failure), *found, *_complaints(stage, breaks_disks=True), *_ends(stage)]
        say(f"noted: {_counts(history)}")
        for broker in stage.brokers.values():
            for _, what in broker.ends:
                say(what)
            say(f"{broker.name}: {broker.logged(MOVED)} logs moved, {broker.logged(WENT_OFFLINE)} disks failed")
        found += _complaints(stage, breaks_disks=False)
        return [*contradictions(history, end), *unmoved(stage), *differences(stage), *found, *_ends(stage)]


def _strike(
    stage: Stage,
    load: Load,
    deck: Iterator[Fault],
    dice: random.Random,
    seconds: float,
    say: Say,
    found: list[str],
) -> None:
    """Rounds of faults until the time is up. `found` gets what brokers logged in each that they must not.

    Raises TimeoutError if the cluster does not come back from one, ClientFailureError if a client does not get over it.
    """
    began_at = time.monotonic()
    rounds = 0
    while time.monotonic() - began_at < seconds:
        rounds += 1
        going_on: list[tuple[float, Struck]] = []
        if dice.random() < MOVES_SHARE:
            say(f"{time.monotonic() - began_at:6.1f} {move_logs(stage, dice).what}")
        for _ in range(dice.randint(1, MOST_AT_ONCE)):
            struck = next(deck)(stage, dice)
            say(f"{time.monotonic() - began_at:6.1f} {struck.what}, for {struck.duration_s:.1f} s")
            going_on.append((time.monotonic() + struck.duration_s, struck))
            let_pass(dice.uniform(0, 3))
        for until, struck in sorted(going_on, key=lambda each: each[0]):
            let_pass(max(0.0, until - time.monotonic()))
            struck.mend()
        say(f"{time.monotonic() - began_at:6.1f} mended")
        last = stage.wait_until_well(WELL_S)
        say(f"{time.monotonic() - began_at:6.1f} well; at last it was not, as {last[:MOST_ILLS]}")
        last = load.wait_for_progress()
        say(f"{time.monotonic() - began_at:6.1f} all get through; at last {last[:MOST_ILLS]}")
        found += _complaints(stage, breaks_disks=any(struck.breaks_disk for _, struck in going_on))
        if rounds % ROUNDS_TO_ROLL == 0:
            say(f"{time.monotonic() - began_at:6.1f} {roll(stage, dice).what}")


def _complaints(stage: Stage, *, breaks_disks: bool) -> list[str]:
    """What brokers have logged since the last look that they must not."""
    expected = (*EXPECTED_ERRORS, *EXPECTED_OF_BROKEN_DISKS) if breaks_disks else EXPECTED_ERRORS
    return [each for broker in stage.brokers.values() for each in broker.complaints(expected)]


def _ends(stage: Stage) -> list[str]:
    """Ends that no fault explains."""
    return [end for broker in stage.brokers.values() for code, end in broker.ends if code not in EXPECTED_EXITS]


def _counts(history: History) -> str:
    return (
        f"{len(history.acknowledged)} acknowledged, {sum(map(len, history.seen.values()))} read, "
        f"{len(history.transactions)} transactions, {len(history.looks)} looks at offsets, {len(history.lives)} lives"
    )


def _end_in_order(number: int, _: FrameType | None) -> None:
    """A signal ends it as an exception does: once, for nothing is to cut short what ends brokers and ZooKeepers."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _kill_children() -> None:
    """Those that were being started when the signal came, of which nobody knows: all are children of this process."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--directory", type=Path, help="default: a temporary one, kept when something is wrong")
    names = {fault.__name__: fault for fault in ALL}
    parser.add_argument(
        "--faults", nargs="+", choices=list(names), default=list(names), metavar="NAME", help="of faults.py"
    )
    options = parser.parse_args()
    directory = options.directory or Path(tempfile.mkdtemp(prefix="kavka-chaos-"))
    # SIGINT too: a shell has what it starts in the background ignore it.
    for each in ENDING:
        signal.signal(each, _end_in_order)
    print(f"seed {options.seed}, in {directory}", flush=True)
    try:
        faults = [names[name] for name in options.faults]
        found = chaos(directory, options.seed, options.seconds, lambda line: print(line, flush=True), faults)
    finally:
        _kill_children()
    for sentence in found:
        print(sentence)
    print(f"seed {options.seed}: {f'{len(found)} faults, see {directory}' if found else 'nothing is wrong'}")
    if not found and options.directory is None:
        shutil.rmtree(directory)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
