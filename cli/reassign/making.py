"""Plans for a cluster as it is: what is asked of it, and what is shown and written of the plan."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.reassign.cluster_view import log_dirs_of, racks_of, replicas_of, sizes_of
from kavka.cli.reassign.json_files import read_topics, reassignment_text
from kavka.cli.reassign.moves import bytes_to_move
from kavka.cli.reassign.placement import Assignment
from kavka.cli.reassign.plan_text import broker_lines, plan_report
from kavka.cli.reassign.planning import Wish, planned
from kavka.cli.showing import Report
from kavka.cli.topics.naming import matching
from kavka.client.topic_partition import TopicPartition
from kavka.cluster.assignment import assign_replicas
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin


def wish_of(args: argparse.Namespace) -> Wish:
    """Raises Failure when nothing is wished for."""
    wish = Wish(
        added=args.add_brokers or (),
        drained=args.drain_brokers or (),
        is_balanced=args.balance,
        replication_factor=args.replication_factor,
        targets=args.broker_list,
    )
    if not (wish.added or wish.drained or wish.is_balanced or wish.replication_factor):
        raise Failure(
            "nothing is asked for",
            "give one or more of --add-brokers, --drain-brokers, --balance, --replication-factor",
            WRONG_USAGE,
        )
    return wish


def plan(admin: "Admin", args: argparse.Namespace) -> tuple[dict[TopicPartition, tuple[int, ...]], Report]:
    """The new replicas of what is to change, and what to show of it. Raises Failure, KafkaError, OSError."""
    wish = wish_of(args)
    racks = racks_of(admin, is_rack_aware=not args.disable_rack_aware)
    current = replicas_of(admin, _topics(admin, args))
    sizes = sizes_of(log_dirs_of(admin, racks))
    proposed = planned(current, racks, wish, sizes=sizes)
    report = plan_report(proposed, current, bytes_to_move(proposed, current, sizes))

    def lines() -> list[str]:
        brokers = broker_lines({**current, **proposed}, current, racks, sizes) if proposed else []
        return [*report.lines(), *([""] if brokers else []), *brokers]

    return proposed, report._replace(lines=lines)


def generated(
    admin: "Admin", args: argparse.Namespace, *, start_index: int, start_shift: int
) -> tuple[Assignment, Assignment]:
    """The replicas now and proposed, as Kafka's `--generate` deals them: in turn from a random start, all anew.

    Raises Failure, OSError.
    """
    current = replicas_of(admin, read_topics(args.topics_to_move_json_file))
    racks = racks_of(admin, is_rack_aware=not args.disable_rack_aware)
    if unknown := sorted(set(args.broker_list) - racks.keys()):
        raise Failure(f"no broker {', '.join(map(str, unknown))}")
    takers = {each: racks[each] for each in args.broker_list}
    if None in takers.values() and set(takers.values()) != {None}:
        raise Failure("not all brokers have a rack", "--disable-rack-aware leaves racks aside")
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted({partition.topic for partition in current}):
        rows = sorted(each for each in current if each.topic == topic)
        try:
            dealt = assign_replicas(
                takers, len(rows), len(current[rows[0]]), start_index=start_index, start_shift=start_shift
            )
        except BrokerError as error:
            raise Failure(f"topic {topic}: {error}") from error
        proposed |= {TopicPartition(topic, index): replicas for index, replicas in dealt.items()}
    return current, proposed


def write_reassignment(path: str, assignment: Assignment) -> None:
    """Save it as Kafka's JSON; a file that is there is not written over. Raises Failure, OSError."""
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(reassignment_text(assignment) + "\n")
    except FileExistsError as error:
        raise Failure(f"{path} is there already") from error


def _topics(admin: "Admin", args: argparse.Namespace) -> list[str]:
    if args.topics_to_move_json_file is not None:
        return read_topics(args.topics_to_move_json_file)
    names = sorted(admin.list_topics(include_internal=not args.exclude_internal))
    if found := matching(args.topic, names):
        return found
    raise Failure("there are no topics" if args.topic is None else f"no topic matches {args.topic}")
