"""What group members reported, held against what a group promises.

- Nothing is delivered to two members of one generation, and no partition has two owners at a time.
- Nothing is skipped: every record is delivered to somebody, and within one ownership in a row.
- Committed offsets never lie: who takes a partition over begins at the last acknowledged commit, or, where the
  acknowledgement was lost with a killed member or broker, between that and what had been delivered.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

FOREVER_NS = 1 << 62


class Member(Protocol):
    """A member's name and what it reported (see group_member.py)."""

    name: str
    identity: str
    """The instance id of a static member, which several processes may have one after the other."""
    by_epoch: bool
    killed_at_ns: int | None

    @property
    def events(self) -> list[dict[str, Any]]: ...

    def of(self, *kinds: str) -> list[dict[str, Any]]: ...

    def story(self) -> str: ...


@dataclass
class Ownership:
    """A partition in one member's hands. Times are the machine's monotonic clock."""

    member: str
    partition: str
    from_ns: int
    to_ns: int = FOREVER_NS
    delivered: list[tuple[int, int, int]] = field(default_factory=list)
    """(at_ns, first offset, next offset), in order."""
    sought: bool = False


def ownerships(members: Iterable[Member]) -> list[Ownership]:
    """Who had which partition when, and what was delivered to it then; by beginning."""
    found: list[Ownership] = []
    for member in members:
        found += _of_one(member)
    return sorted(found, key=lambda one: one.from_ns)


def assert_sound(members: Sequence[Member], ends: Mapping[str, int], *, zombies: Iterable[Member] = ()) -> None:
    """All promises, for a group that has consumed everything below `ends`.

    `zombies` were frozen or too slow: they believe in an ownership that the group has taken from them.
    """
    asleep = {member.name for member in zombies}
    held = ownerships(members)
    _assert_one_owner_at_a_time([one for one in held if one.member not in asleep])
    _assert_one_owner_in_a_generation(members)
    _assert_in_a_row(held)
    _assert_all_delivered(held, ends)
    _assert_begun_where_committed(members, held)


def committed(members: Iterable[Member]) -> dict[str, int]:
    """The highest acknowledged commit of each partition."""
    reached: dict[str, int] = {}
    for member in members:
        for event in member.of("committed"):
            for partition, offset in event["offsets"].items():
                reached[partition] = max(reached.get(partition, 0), offset)
    return reached


def all_committed(members: Iterable[Member], ends: Mapping[str, int]) -> bool:
    """Whether somebody's acknowledged commit stands at each end."""
    reached = committed(members)
    return all(reached.get(partition, 0) >= end for partition, end in ends.items())


def all_delivered(members: Iterable[Member], ends: Mapping[str, int]) -> bool:
    """Whether the last record of each partition was delivered to somebody."""
    reached: dict[str, int] = {}
    for member in members:
        for event in member.of("delivered"):
            reached[event["partition"]] = max(reached.get(event["partition"], 0), event["next"])
    return all(reached.get(partition, 0) >= end for partition, end in ends.items())


def _of_one(member: Member) -> Iterator[Ownership]:
    current: dict[str, Ownership] = {}
    for event in member.events:
        kind, at_ns = event["event"], event["at_ns"]
        if kind == "assigned":
            for partition in event["partitions"]:
                # An eager member that was fenced may be assigned anew with no word about the old assignment.
                if partition in current:
                    yield _ended(current.pop(partition), at_ns)
                current[partition] = Ownership(member.name, partition, at_ns)
        elif kind in ("revoked", "lost"):
            for partition in event["partitions"]:
                if partition in current:
                    yield _ended(current.pop(partition), at_ns)
        elif kind == "sought":
            if event["partition"] in current:
                current[event["partition"]].sought = True
        elif kind == "delivered":
            owner = current.get(event["partition"])
            assert owner, f"{member.name} was given {event} without an assignment\n{member.story()}"
            owner.delivered.append((at_ns, event["first"], event["next"]))
        elif kind == "closing":
            for partition in list(current):
                yield _ended(current.pop(partition), at_ns)
    for one in current.values():
        yield _ended(one, member.killed_at_ns or FOREVER_NS)


def _ended(one: Ownership, at_ns: int) -> Ownership:
    one.to_ns = at_ns
    return one


def _assert_one_owner_at_a_time(held: list[Ownership]) -> None:
    last: dict[str, Ownership] = {}
    for one in held:
        before = last.get(one.partition)
        assert before is None or before.to_ns <= one.from_ns, f"two owners at a time: {before} and {one}"
        last[one.partition] = one


def _assert_one_owner_in_a_generation(members: Iterable[Member]) -> None:
    """By the generation that the member believes in: holds for members that were frozen, too.

    Generations are the group's in the classic protocol; a member's epoch in the new one is its own affair.
    """
    owners: dict[tuple[int, str], str] = {}
    for member in members:
        for event in member.of("delivered"):
            generation = event["generation"]
            if generation is not None and generation >= 0 and not member.by_epoch:
                owner = owners.setdefault((generation, event["partition"]), member.identity)
                assert owner == member.identity, f"{event} to {member.name}, but that generation's owner is {owner}"


def _assert_in_a_row(held: Iterable[Ownership]) -> None:
    for one in held:
        if not one.sought:
            for before, after in zip(one.delivered, one.delivered[1:], strict=False):
                assert after[1] == before[2], f"{one.partition} to {one.member}: {after} follows {before}"


def _assert_all_delivered(held: Iterable[Ownership], ends: Mapping[str, int]) -> None:
    runs: dict[str, list[tuple[int, int]]] = {}
    for one in held:
        runs.setdefault(one.partition, []).extend((first, after) for _, first, after in one.delivered)
    for partition, end in ends.items():
        reached = 0
        for first, after in sorted(runs.get(partition, [])):
            assert first <= reached, f"{partition}: {reached} to {first} was delivered to nobody"
            reached = max(reached, after)
        assert reached >= end, f"{partition}: only {reached} of {end} were delivered"


def _assert_begun_where_committed(members: Iterable[Member], held: Iterable[Ownership]) -> None:
    commits = sorted(
        (event["at_ns"], partition, offset)
        for member in members
        for event in member.of("committed")
        for partition, offset in event["offsets"].items()
    )
    reached: dict[str, int] = {}
    for one in held:
        if one.delivered and not one.sought:
            committed = [offset for at_ns, name, offset in commits if name == one.partition and at_ns < one.from_ns]
            least, begun, most = (committed or [0])[-1], one.delivered[0][1], reached.get(one.partition, 0)
            assert least <= begun <= max(least, most), (
                f"{one.member} begins {one.partition} at {begun}: {least} was committed, {most} delivered"
            )
        last = max((after for _, _, after in one.delivered), default=0)
        reached[one.partition] = max(reached.get(one.partition, 0), last)
