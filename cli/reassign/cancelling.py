"""Giving a reassignment up, and moving back what of it is done already."""

import argparse
from typing import TYPE_CHECKING

from kavka.cli.counting import counted
from kavka.cli.failing import Failure
from kavka.cli.reassign.cluster_view import replicas_now
from kavka.cli.reassign.executing import finish, start_directories
from kavka.cli.reassign.following import follow, note
from kavka.cli.reassign.json_files import Reassignment
from kavka.cli.reassign.states import Checked, checked, moving_directories

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin


def cancel(admin: "Admin", wanted: Reassignment, back: Reassignment | None, args: argparse.Namespace) -> list[Checked]:
    """Give up what moves, then move back what `back` has elsewhere; where all of it is in the end.

    Raises Failure for a rollback of other partitions, KafkaError, ItemErrors.
    """
    if back is not None and (foreign := sorted(back.replicas.keys() - wanted.replicas.keys())):
        raise Failure(f"{args.rollback_json_file} is of another reassignment: {foreign[0]} is not in this one")
    active = sorted(admin.list_partition_reassignments(wanted.replicas))
    if active:
        admin.alter_partition_reassignments(dict.fromkeys(active))
    moving = moving_directories(admin, wanted)
    # A replica that is sent to where it is moves no more.
    start_directories(admin, moving, args.timeout)
    note(f"cancelled: {counted(len(active), 'partition')}, {counted(len(moving), 'log directory move')}")
    follow(admin, Reassignment(wanted.replicas, {}))
    if back is not None:
        _move_back(admin, back)
    if not args.preserve_throttles:
        note(finish(admin, wanted))
    target = back if back is not None else Reassignment(replicas_now(admin, wanted.replicas), {})
    return checked(admin, target).rows


def _move_back(admin: "Admin", back: Reassignment) -> None:
    current = replicas_now(admin, back.replicas)
    moved = {partition: replicas for partition, replicas in back.replicas.items() if current[partition] != replicas}
    if moved:
        note(f"moving back: {counted(len(moved), 'partition')}")
        admin.alter_partition_reassignments(moved)
        follow(admin, Reassignment(moved, {}))
