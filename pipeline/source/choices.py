"""Where reading begins and ends, as options say it, and which offsets that means.

Sources: KafkaOffsetRangeLimit and KafkaSourceProvider.getKafkaOffsetRangeLimit of spark-sql-kafka.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.offsets import Offsets, listed, parsed

LATEST: Final = -1
EARLIEST: Final = -2
"""Among offsets: the partition's end and its beginning, as in Kafka's ListOffsets."""


class Kind(enum.Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMES = "times"
    TIME = "time"


@dataclass(frozen=True)
class Choice:
    """Where, and the option that said so. Immutable.

    `numbers` are offsets or, in milliseconds since 1970, times; `time_ms` is for all partitions.
    `is_latest_without_match` lets partitions without a record since then count as read to their end.
    """

    kind: Kind
    option: str
    numbers: Mapping[TopicPartition, int] = field(default_factory=dict)
    time_ms: int = 0
    is_latest_without_match: bool = True

    @property
    def may_mean_latest(self) -> bool:
        """Whether it means something else each time that it is asked, as new records come."""
        if self.kind is Kind.OFFSETS:
            return LATEST in self.numbers.values()
        return self.kind is Kind.LATEST or (self.kind is not Kind.EARLIEST and self.is_latest_without_match)


def starting(options: Mapping[str, str], *, default: Kind) -> Choice:
    """By startingTimestamp, startingOffsetsByTimestamp or startingOffsets; the first that is given counts.

    Raises OptionError.
    """
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise OptionError(f"startingOffsetsByTimestampStrategy is error or latest, not {strategy}")
    return _choice(options, "starting", default, is_latest_without_match=strategy == "latest")


def ending(options: Mapping[str, str]) -> Choice:
    """By endingTimestamp, endingOffsetsByTimestamp or endingOffsets. Raises OptionError."""
    choice = _choice(options, "ending", Kind.LATEST, is_latest_without_match=True)
    if choice.kind is Kind.EARLIEST or (choice.kind is Kind.OFFSETS and EARLIEST in choice.numbers.values()):
        raise OptionError(f"{choice.option}: a range cannot end at the earliest offset")
    return choice


def _choice(options: Mapping[str, str], side: str, default: Kind, *, is_latest_without_match: bool) -> Choice:
    time = options.get(f"{side}timestamp")
    times = options.get(f"{side}offsetsbytimestamp")
    offsets = options.get(f"{side}offsets")
    if time is not None:
        name = f"{side}Timestamp"
        return Choice(Kind.TIME, name, time_ms=_time(time, name), is_latest_without_match=is_latest_without_match)
    if times is not None:
        name = f"{side}OffsetsByTimestamp"
        numbers = parsed(times, name)
        _check_from(numbers, 0, name)
        return Choice(Kind.TIMES, name, numbers, is_latest_without_match=is_latest_without_match)
    name = f"{side}Offsets"
    if offsets is None:
        return Choice(default, name)
    word = offsets.strip().lower()
    if word in (Kind.EARLIEST.value, Kind.LATEST.value):
        return Choice(Kind(word), name)
    if not word.startswith("{"):
        raise OptionError(f'{name} is earliest, latest, or JSON like {{"topic":{{"0":23}}}}, not {offsets[:200]}')
    numbers = parsed(offsets, name)
    _check_from(numbers, EARLIEST, name)
    return Choice(Kind.OFFSETS, name, numbers)


def _time(text: str, option: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit():
        raise OptionError(f"{option} is milliseconds since 1970, not {text[:200]}")
    return int(text)


def _check_from(numbers: Mapping[TopicPartition, int], least: int, option: str) -> None:
    wrong = next((each for each, number in numbers.items() if not least <= number < 2**63), None)
    if wrong is not None:
        raise OptionError(f"{option}: there is no {numbers[wrong]} for {wrong}")


def resolved(
    choice: Choice,
    partitions: Collection[TopicPartition],
    bounds: LogBounds,
    ends: Mapping[TopicPartition, int] | None = None,
) -> Offsets:
    """The offsets that are meant, now. Raises OptionError where the choice leaves partitions out, or finds nothing.

    `ends` are what the latest offsets are taken to be, of partitions that they have.
    """
    if choice.kind is Kind.EARLIEST:
        return bounds.first_offsets(partitions)
    if choice.kind is Kind.LATEST:
        return _latest(partitions, bounds, ends)
    if choice.kind is Kind.TIME:
        return _at_times(choice, dict.fromkeys(partitions, choice.time_ms), bounds, ends)
    if set(choice.numbers) != set(partitions):
        missing, foreign = set(partitions) - set(choice.numbers), set(choice.numbers) - set(partitions)
        told = f"leaves out {listed(missing)}" if missing else f"names {listed(foreign)}, which is not read"
        raise OptionError(f"{choice.option} {told}: it has to name each partition (-2: earliest, -1: latest)")
    if choice.kind is Kind.TIMES:
        return _at_times(choice, choice.numbers, bounds, ends)
    found = {each: number for each, number in choice.numbers.items() if number >= 0}
    earliest = [each for each, number in choice.numbers.items() if number == EARLIEST]
    latest = [each for each, number in choice.numbers.items() if number == LATEST]
    return {**found, **bounds.first_offsets(earliest), **_latest(latest, bounds, ends)}


def _latest(
    partitions: Collection[TopicPartition], bounds: LogBounds, ends: Mapping[TopicPartition, int] | None
) -> Offsets:
    return {**bounds.end_offsets(partitions), **{each: ends[each] for each in partitions if ends and each in ends}}


def _at_times(
    choice: Choice,
    times: Mapping[TopicPartition, int],
    bounds: LogBounds,
    ends: Mapping[TopicPartition, int] | None,
) -> Offsets:
    found = bounds.offsets_at(times)
    missing = [each for each, offset in found.items() if offset is None]
    if missing and not choice.is_latest_without_match:
        raise OptionError(
            f"{choice.option}: {listed(missing)} has no record since {times[missing[0]]}; "
            "startingOffsetsByTimestampStrategy=latest begins at the end then"
        )
    latest = _latest(missing, bounds, ends)
    return {each: latest[each] if offset is None else offset for each, offset in found.items()}
