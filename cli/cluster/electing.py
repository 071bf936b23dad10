"""Elections of leaders (KIP-183, KIP-460)."""

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.failing import Failure, excused, tried
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.showing import Value
from kavka.client.admin.types.topics import ElectionType
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kavka.client import Admin
    from kavka.client.admin import ItemErrors

_TYPES: Final = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}


def named_partitions(args: argparse.Namespace) -> list[TopicPartition] | None:
    """Those of the command line or the file; None where the cluster has to be asked. Raises Failure."""
    if args.partition is not None and args.topic is None:
        raise Failure("--partition is for --topic", exit_code=WRONG_USAGE)
    if args.path_to_json_file is not None:
        return file_partitions("--path-to-json-file", args.path_to_json_file)
    return [TopicPartition(args.topic, args.partition)] if args.partition is not None else None


def file_partitions(flag: str, path: str) -> list[TopicPartition]:
    """`{"partitions": [{"topic": "orders", "partition": 1}, ...]}`, as Kafka's tools take it. Raises Failure."""
    expected = '{"partitions": [{"topic": "orders", "partition": 1}]} is expected'
    try:
        with open(path, "rb") as file:
            rows = json.load(file)["partitions"]
        partitions = [TopicPartition(row["topic"], row["partition"]) for row in rows]
    except OSError as error:
        raise Failure(f"{flag} {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise Failure(f"{flag} {path}: {error}", expected) from error
    if not partitions:
        raise Failure(f"{flag} {path}: no partitions", expected)
    for each in partitions:
        if not isinstance(each.topic, str) or type(each.partition) is not int:
            raise Failure(f"{flag} {path}: {list(each)} is no partition", expected)
    return partitions


def elected(
    admin: "Admin", args: argparse.Namespace, partitions: "list[TopicPartition] | None"
) -> "tuple[list[Sequence[Value]], ItemErrors | None]":
    """A row for each partition; where no election was needed that is no failure."""
    if partitions is None and args.topic is not None:
        topic = admin.describe_topics([args.topic])[args.topic]
        partitions = [TopicPartition(args.topic, each.partition) for each in topic.partitions]
    asked = partitions
    done, failure = tried(lambda: admin.elect_leaders(_TYPES[args.election_type], asked))
    needless, failure = excused(failure, "ElectionNotNeededError")
    rows: list[Any] = [(each.topic, each.partition, "elected") for each in sorted(done)]
    if args.topic is not None or asked is not None:
        rows += [(each.topic, each.partition, "not needed") for each in sorted(needless)]
    return rows, failure
