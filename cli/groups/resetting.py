"""Where groups are to go on: Kafka's scenarios of resetting offsets, planned first, carried out then."""

import argparse
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.failing import Failure
from kavka.cli.groups.choosing import outcomes
from kavka.cli.groups.offset_files import read_plan
from kavka.cli.groups.places import named_places, partitions_of
from kavka.cli.output import complain
from kavka.client.admin.types.groups import GroupState, GroupType
from kavka.client.admin.types.topics import OffsetSpec
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.cli.groups.described import Group
    from kavka.client import Admin
    from kavka.client.consumer.group.port import OffsetAndMetadata
    from kavka.client.kafka_error import KafkaError

COMMAND: Final = "kavka groups reset-offsets"


class Reset(NamedTuple):
    """What becomes of a group in a partition."""

    partition: TopicPartition
    current: int | None
    new: int


class Resetting:
    """One command's plan: for each group its partitions' new offsets. Lives for one command."""

    def __init__(self, admin: "Admin", args: argparse.Namespace) -> None:
        self._admin = admin
        self._args = args

    def plans(
        self, groups: "Mapping[str, Group | None]"
    ) -> "tuple[dict[str, list[Reset]], dict[str, KafkaError | Failure]]":
        """By group (None: there is none of that id yet), and why others cannot be reset. Raises Failure, KafkaError."""
        files = read_plan(self._args.from_file, groups) if self._args.from_file is not None else {}
        named = partitions_of(self._admin, named_places(self._args.topic or ()))
        plans: dict[str, list[Reset]] = {}
        failures: dict[str, KafkaError | Failure] = {}
        for group_id, group in groups.items():
            try:
                _require_inactive(group_id, group)
                committed = self._committed(group_id, group)
                chosen = files.get(group_id) or (sorted(committed) if self._args.all_topics else named)
                news = self._new_offsets(group_id, committed, files.get(group_id), list(chosen))
            except Failure as failure:
                failures[group_id] = failure
                continue
            plans[group_id] = [Reset(each, committed.get(each), new) for each, new in sorted(news.items())]
        return plans, failures

    def carry_out(self, group_id: str, group: "Group | None", resets: Iterable[Reset]) -> None:
        """Commit the new offsets. Raises KafkaError, of several partitions ItemErrors."""
        offsets: dict[TopicPartition, int | OffsetAndMetadata] = {each.partition: each.new for each in resets}
        if not offsets:
            return
        if group is not None and group.type is GroupType.SHARE:
            self._admin.alter_share_group_offsets(group_id, {each.partition: each.new for each in resets})
        else:
            self._admin.alter_group_offsets(group_id, offsets)

    def _committed(self, group_id: str, group: "Group | None") -> dict[TopicPartition, int]:
        if group is None:
            return {}
        if group.type is GroupType.SHARE:
            starts = self._admin.list_share_group_offsets({group_id: None})[group_id]
            return {each: found.start_offset for each, found in starts.items() if found.start_offset >= 0}
        stored = self._admin.list_group_offsets({group_id: None})[group_id]
        return {each: found.offset for each, found in stored.items() if found is not None}

    def _new_offsets(
        self,
        group_id: str,
        committed: Mapping[TopicPartition, int],
        from_file: Mapping[TopicPartition, int] | None,
        chosen: list[TopicPartition],
    ) -> dict[TopicPartition, int]:
        args = self._args
        if from_file is not None:
            return self._within(dict(from_file))
        if args.to_earliest:
            return self._found(chosen, OffsetSpec.EARLIEST)
        if args.to_latest:
            return self._found(chosen, OffsetSpec.LATEST)
        if args.to_offset is not None:
            return self._within(dict.fromkeys(chosen, args.to_offset))
        if args.shift_by is not None:
            missing = [each for each in chosen if each not in committed]
            if missing:
                raise Failure(f"{group_id} has no offset of {missing[0]} to be shifted", "--to-earliest needs none")
            return self._within({each: committed[each] + args.shift_by for each in chosen})
        if args.to_current:
            latest = self._found([each for each in chosen if each not in committed], OffsetSpec.LATEST)
            return {**{each: committed[each] for each in chosen if each in committed}, **latest}
        return self._since(chosen)

    def _since(self, chosen: list[TopicPartition]) -> dict[TopicPartition, int]:
        args = self._args
        since_ms = args.to_datetime if args.to_datetime is not None else time.time_ns() // 1_000_000 - args.by_duration
        found = self._found(chosen, max(since_ms, 0))
        later = [each for each, offset in found.items() if offset < 0]
        for partition in later:
            complain(COMMAND, f"{partition} has no record since then: it goes behind the last one")
        return {**found, **self._found(later, OffsetSpec.LATEST)}

    def _within(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """These offsets, or the nearest that there are."""
        earliest = self._found(wanted, OffsetSpec.EARLIEST)
        latest = self._found(wanted, OffsetSpec.LATEST)
        found = {each: min(max(offset, earliest[each]), latest[each]) for each, offset in wanted.items()}
        for partition, offset in found.items():
            if offset != wanted[partition]:
                complain(COMMAND, f"{partition} has no offset {wanted[partition]}: {offset} is the nearest one")
        return found

    def _found(self, partitions: Iterable[TopicPartition], spec: int) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, spec)
        return {each: info.offset for each, info in self._admin.list_offsets(asked).items()} if asked else {}


def groups_to_reset(
    admin: "Admin", group_ids: Iterable[str]
) -> "tuple[dict[str, Group | None], dict[str, KafkaError]]":
    """The groups, None for those that are not there: a reset makes them; and why others cannot be described."""
    from kavka.cli.groups.described import described_groups
    from kavka.client.api_errors import GroupIdNotFoundError

    asked = list(group_ids)
    found, failures = described_groups(admin, asked)
    groups: dict[str, Group | None] = {}
    for group_id in asked:
        if group_id in found:
            groups[group_id] = found[group_id]
        elif isinstance(failures.get(group_id), GroupIdNotFoundError):
            groups[group_id] = None
            del failures[group_id]
    return groups, failures


def carried_out(
    resetting: Resetting, groups: "Mapping[str, Group | None]", plans: Mapping[str, list[Reset]]
) -> "tuple[dict[str, list[Reset]], dict[str, KafkaError]]":
    """What has been done of the plans, and why the rest has not."""
    done: dict[str, list[Reset]] = {}
    failures: dict[str, KafkaError] = {}
    for group_id, resets in plans.items():
        by_partition = {each.partition: each for each in resets}

        def reset(asked: list[TopicPartition], group_id: str = group_id) -> dict[TopicPartition, None]:
            resets = plans[group_id]
            resetting.carry_out(group_id, groups[group_id], resets)
            return dict.fromkeys(asked)

        results, failed = outcomes(by_partition, reset)
        done[group_id] = [each for each in resets if each.partition in results]
        failures.update({f"{group_id}, {partition}": error for partition, error in failed.items()})
    return done, failures


def _require_inactive(group_id: str, group: "Group | None") -> None:
    if group is not None and (group.members or group.state not in (GroupState.EMPTY, GroupState.DEAD)):
        raise Failure(f"{group_id} is {group.state.value}: offsets are reset of groups without members", "stop them")
