"""Where what clients were told and saw, and what the topics hold in the end, contradict one another.

Pure: each function takes what was noted and gives sentences, none if all is well. `contradictions` asks all of them.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.chaos.history import (
    NOWHERE,
    Acknowledged,
    Fate,
    History,
    Isolation,
    Jump,
    Life,
    Log,
    Look,
    Place,
    Transaction,
)

MOST_SENTENCES: Final = 20
"""Of each kind. One lost segment would fill the screen."""


@dataclass(frozen=True)
class End:
    """What the topics hold when all is over, read from their beginning to their end; and which topic copies which."""

    everything: Mapping[Place, Log]
    committed: Mapping[Place, Log]
    copies: Mapping[str, str]
    """By topic that a copier wrote: the one that it copied."""


def contradictions(history: History, end: End) -> list[str]:
    """All that is wrong, at most `MOST_SENTENCES` of each kind."""
    found: list[str] = [*history.surprises]
    kinds: Iterable[Iterable[str]] = (
        lost(history.acknowledged, end.everything),
        out_of_order(history.acknowledged),
        doubled(history.idempotent, end.everything),
        never_sent(history.sent, end.everything),
        read_and_cut(history.seen, end),
        skipped(history.jumps, end),
        torn(history.transactions, end.committed),
        gone_back(history.looks),
        copied_wrongly(end),
        of_another_life(history.lives),
    )
    for kind in kinds:
        sentences = list(kind)
        found += sentences[:MOST_SENTENCES]
        if len(sentences) > MOST_SENTENCES:
            found.append(f"... and {len(sentences) - MOST_SENTENCES} more of these")
    return found


def lost(acknowledged: Iterable[Acknowledged], everything: Mapping[Place, Log]) -> Iterator[str]:
    """What was acknowledged lies where its producer was told."""
    held = {place: dict(log) for place, log in everything.items()}
    values = {place: {value for _, value in log} for place, log in everything.items()}
    for told in acknowledged:
        if told.offset == NOWHERE:
            if told.value not in values.get(told.place, ()):
                yield f"acknowledged as a duplicate and lost: {told.value} of {told.place}"
            continue
        found = held.get(told.place, {}).get(told.offset)
        if found != told.value:
            yield f"acknowledged and lost: {told.value} at {told.offset} of {told.place}, where {found} is"


def out_of_order(acknowledged: Iterable[Acknowledged]) -> Iterator[str]:
    """What a producer sent later to a partition lies behind what it sent before."""
    streams: dict[tuple[str, Place], list[tuple[int, int]]] = defaultdict(list)
    for told in acknowledged:
        if told.offset != NOWHERE:
            streams[told.producer, told.place].append((told.number, told.offset))
    for (producer, place), stream in streams.items():
        for (earlier, before), (later, after) in pairwise(sorted(stream)):
            if after <= before:
                yield f"out of order: {producer}'s {later} at {after} of {place}, its {earlier} at {before}"


def doubled(idempotent: set[str], everything: Mapping[Place, Log]) -> Iterator[str]:
    """Records of idempotent producers are there once, in the order of their numbers."""
    for place, log in everything.items():
        last: dict[str, tuple[int, int]] = {}
        for offset, value in log:
            producer, number = written_by(value)
            if producer not in idempotent:
                continue
            previous, at = last.get(producer, (-1, -1))
            if number <= previous:
                yield f"doubled or out of order: {value} at {offset} of {place}, after number {previous} at {at}"
            else:
                last[producer] = (number, offset)


def never_sent(sent: Mapping[tuple[str, Place], int], everything: Mapping[Place, Log]) -> Iterator[str]:
    """Whatever is there was sent there by somebody; transactions are looked at by themselves (`torn`)."""
    producers = {producer for producer, _ in sent}
    for place, log in everything.items():
        for offset, value in log:
            producer, number = written_by(value)
            if producer in producers and number >= sent.get((producer, place), 0):
                yield f"nobody sent {value}, at {offset} of {place}"


def read_and_cut(seen: Mapping[tuple[Isolation, Place], Mapping[int, str]], end: End) -> Iterator[str]:
    """What any reader was given is still there, at the same offset."""
    for (isolation, place), records in seen.items():
        held = dict(_view(end, isolation).get(place, []))
        for offset, value in sorted(records.items()):
            if held.get(offset) != value:
                yield f"read and cut ({isolation.value}): {value} at {offset} of {place}, where {held.get(offset)} is"


def skipped(jumps: Iterable[Jump], end: End) -> Iterator[str]:
    """Between two records that a reader was given one after the other lies nothing that it may see."""
    offsets = {
        (isolation, place): [offset for offset, _ in log]
        for isolation in Isolation
        for place, log in _view(end, isolation).items()
    }
    for jump in jumps:
        if jump.offset <= jump.previous:
            yield f"read backwards ({jump.isolation.value}): {jump.offset} of {jump.place} after {jump.previous}"
            continue
        there = offsets.get((jump.isolation, jump.place), [])
        passed = there[bisect_right(there, jump.previous) : bisect_left(there, jump.offset)]
        if passed:
            yield (
                f"read over ({jump.isolation.value}): {len(passed)} records from {passed[0]} of {jump.place}, "
                f"between {jump.previous} and {jump.offset}"
            )


def torn(transactions: Sequence[Transaction], committed: Mapping[Place, Log]) -> Iterator[str]:
    """A committed transaction is there whole and once, an aborted one not at all, an unknown one either way."""
    there = Counter((place, value) for place, log in committed.items() for _, value in log)
    for name, fate, records in transactions:
        present = [record for record in records if there[record]]
        if fate is Fate.COMMITTED and len(present) != len(records):
            yield f"{name} was committed, and lacks {sorted(set(records) - set(present))[:3]}"
        if fate is Fate.ABORTED and present:
            yield f"{name} was aborted, and shows {present[:3]}"
        if fate is Fate.UNKNOWN and present and len(present) != len(records):
            yield f"{name} is there in part: {len(present)} of {len(records)} records, as {present[:3]}"
        for record in records:
            if there[record] > 1:
                yield f"{name} is there {there[record]} times: {record}"


def gone_back(looks: Iterable[Look]) -> Iterator[str]:
    """A committed offset that somebody knew of is not above one that is told to who asks later."""
    by_partition: dict[tuple[str, Place], list[Look]] = defaultdict(list)
    for look in looks:
        by_partition[look.group, look.place].append(look)
    for (group, place), those in by_partition.items():
        known = sorted(those, key=lambda look: look.ended)
        position, highest = 0, -1
        for asked in sorted(those, key=lambda look: look.began):
            while known[position].ended < asked.began:
                highest = max(highest, known[position].offset)
                position += 1
            if asked.offset < highest:
                what = "commits" if asked.is_commit else "is told"
                yield f"gone back: {group} {what} {asked.offset} for {place}, where {highest} was committed"


def copied_wrongly(end: End) -> Iterator[str]:
    """A copy that was made exactly once has each of the source's records, as `OFFSET=VALUE`, in their order."""
    for target, source in end.copies.items():
        places = [place for place in end.committed if place[0] == target]
        for place in places:
            wanted = [f"{offset}={value}" for offset, value in end.committed.get((source, place[1]), [])]
            found = [value for _, value in end.committed[place]]
            if found != wanted:
                yield f"{place} is no copy of {source}: {_first_difference(wanted, found)}"


def of_another_life(lives: Iterable[Life]) -> Iterator[str]:
    """A topic that was made again has what was written into it since, all of it, and nothing of before."""
    for topic, number, acknowledged, read in lives:
        strangers = [value for _, value in read if not value.startswith(f"{topic}.{number}:")]
        if strangers:
            yield f"{topic}, made for the {number}th time, has {strangers[:3]}"
        missing = set(acknowledged) - set(read)
        if missing:
            yield f"{topic}, made for the {number}th time, has lost {sorted(missing)[:3]}"


def written_by(value: str) -> tuple[str, int]:
    """Who wrote a value, and as which number; the number is -1 where it is none of a numbering producer."""
    producer, _, number = value.partition(":")
    return producer, int(number) if number.isascii() and number.isdigit() else -1


def _view(end: End, isolation: Isolation) -> Mapping[Place, Log]:
    return end.everything if isolation is Isolation.ALL else end.committed


def _first_difference(wanted: Sequence[str], found: Sequence[str]) -> str:
    for index, (one, other) in enumerate(zip(wanted, found, strict=False)):
        if one != other:
            return f"{other} where {one} belongs, as number {index}"
    return f"{len(found)} records instead of {len(wanted)}"
