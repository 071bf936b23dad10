"""Rates, token buckets and throttle times beside Kafka's own classes, on histories that nobody made up by hand."""

import random
import struct
import subprocess
from collections.abc import Callable

import pytest

from kavka.broker.quotas.limits import Tags
from kavka.broker.quotas.meters import Meter, MutationMeter
from kavka.broker.quotas.samples import Average, Window
from tests.support.java import QUIET, SHORT_LIVED
from tests.support.java_classes import compiled

HISTORIES = 120
TAGS = Tags("user", "client")
START_MS = 1_700_000_000_000

History = tuple[int, int, float, list[tuple[int, str]]]
"""Samples, seconds each, the quota, and what was recorded when."""


def histories(seed: int, values: Callable[[random.Random], str]) -> list[History]:
    """With pauses of all lengths, so that samples come, go and are used again."""
    source = random.Random(seed)
    made: list[History] = []
    for _ in range(HISTORIES):
        now_ms = START_MS
        events = []
        for _ in range(source.randrange(1, 80)):
            now_ms += source.choice([0, 1, 7, source.randrange(900), source.randrange(4_000), source.randrange(30_000)])
            events.append((now_ms, values(source)))
        made.append((source.choice([1, 2, 3, 11]), source.choice([1, 2]), source.choice([0.5, 10, 333.25]), events))
    return made


def asked(kind: str, made: list[History]) -> list[tuple[list[int], float]]:
    """Kafka's throttle times, and what it measures at the end."""
    lines = "".join(
        " ".join([kind, str(samples), str(seconds), str(quota), *[f"{at} {value}" for at, value in events]]) + "\n"
        for samples, seconds, quota, events in made
    )
    command = ["java", *SHORT_LIVED, QUIET, "-cp", compiled("QuotaOracle", "kafka-3.9"), "QuotaOracle"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=240, check=True)
    answers = []
    for line in done.stdout.splitlines():
        throttled, _, bits = line.partition(":")
        (value,) = struct.unpack(">d", int(bits, 16).to_bytes(8, "big"))
        answers.append(([int(each) for each in throttled.split()], value))
    return answers


def some_value(source: random.Random) -> str:
    return str(source.choice([1, 5, 60, 2000, source.randrange(100_000), round(source.random() * 40, 3)]))


def some_value_or_its_undoing(source: random.Random) -> str:
    return source.choice(["", "", "", "!-"]) + str(source.choice([1, 5, 60, 2000]))


@pytest.mark.parametrize("values", [some_value, some_value_or_its_undoing])
def test_throttle_times_are_kafkas(values: Callable[[random.Random], str]) -> None:
    made = histories(7, values)
    for (samples, seconds, quota, events), (throttled, measured) in zip(made, asked("rate", made), strict=True):
        meter = Meter(TAGS, Window(samples, seconds * 1000), quota, START_MS)
        for (now_ms, text), throttle_ms in zip(events, throttled, strict=True):
            if text.startswith("!"):
                meter.add(float(text[1:]), now_ms)
            else:
                assert meter.record(float(text), now_ms) == throttle_ms
        assert meter.measure(events[-1][0]) == measured


def test_buckets_of_tokens_are_kafkas() -> None:
    made = histories(8, lambda source: str(source.choice([0, 1, 3, 10, 200])))
    for (samples, seconds, quota, events), (throttled, measured) in zip(made, asked("tokens", made), strict=True):
        meter = MutationMeter(TAGS, Window(samples, seconds * 1000), quota, START_MS)
        assert [meter.take(int(text), now_ms) for now_ms, text in events] == throttled
        assert meter.tokens(events[-1][0]) == measured


def test_averages_are_kafkas() -> None:
    made = histories(9, some_value)
    for (samples, seconds, _, events), (_, measured) in zip(made, asked("average", made), strict=True):
        average = Average(Window(samples, seconds * 1000))
        for now_ms, text in events:
            average.record(float(text), now_ms)
        assert average.measure(events[-1][0]) == measured
