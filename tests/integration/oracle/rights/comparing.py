"""Asking both brokers as everybody whom the table knows, and telling what differs."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.integration.oracle.answers.stage import differences
from tests.integration.oracle.rights.sides import Side, Sides
from tests.integration.oracle.rights.table import TWINS, Grant, Names, Row

ATTEMPTS: Final = 3
"""What is asked too early, of a coordinator or a controller, is asked again."""


class Known(NamedTuple):
    """A difference that is meant, by a pattern of the row's name and one of `path: kavka ..., kafka ...`."""

    row: str
    difference: str
    reason: str


KNOWN: Final = [
    Known("leader_and_isr", r"topics: kavka \[\], kafka", "who is deposed is told that, and no more"),
    Known(".*_partition_reassignments", "error_message: kavka None", "3.9 has an empty string, 4.3 null"),
    Known(
        "find_coordinator_of_shares",
        "kavka 'INVALID_REQUEST', kafka 'COORDINATOR_NOT_AVAILABLE'$",
        "Kafka 3.9 waits for ever for the topic of share groups; in Kavka there are none",
    ),
    Known("create_topics_for_trial", "topic_id", "as in 4.3; 3.9 has no id for a topic that is not created"),
    Known("delete_topics.*", "error_message: kavka 'worded'", "as in 4.3; 3.9 has no words"),
    Known("delete_topics", "topic_id", "as in 4.3; 3.9 leaves the id out where the name was given"),
    Known(
        "(create|describe)_delegation_token", "(hmac|token_id|timestamp|timestamp_ms): kavka", "each token is another"
    ),
    Known("describe_configs", "is_default: kavka True", "3.9 never sets it in v0; Kavka still tells the truth"),
    Known(
        "update_features",
        r"error_code: kavka 'INVALID_UPDATE_VERSION', kafka 'NONE'$|error_message: kavka 'worded', kafka None$|"
        r"results: kavka \[\], kafka \[\{'feature': 'unheard\.of', 'error_code': 'INVALID_REQUEST'",
        "what cannot be is refused as a whole, as in 4.3; 3.9 refuses each feature by itself",
    ),
]


def unexpected(row: Row, versions: Iterable[int], grants: Iterable[Grant], sides: Sides) -> list[str]:
    """What Kavka answers otherwise than Kafka, one line each, but for what is meant."""
    found = []
    for grant in grants:
        for version in versions:
            lines: list[str] = []
            for _ in range(ATTEMPTS):
                ours, theirs = (_answer(row, version, grant, side, sides) for side in (sides.kavka, sides.kafka))
                lines = [line for line in differences(ours, theirs) if not _is_known(row, line)]
                if not lines:
                    break
            found += [f"v{version} {grant.name}: {line}" for line in lines]
    return found


def tells_twins_apart(row: Row, version: int, user: str, side: Side, name: str) -> bool:
    """Whether the answers for what there is and for what there is not differ in more than the name."""
    names = side.names
    there, absent = (
        side.answer_bytes(user, row.request(version, each), version) for each in (names, _renamed(names, name))
    )
    twin = TWINS[name].encode()
    return absent.replace(twin, name.encode()) != there.replace(twin, name.encode())


def _renamed(names: Names, name: str) -> Names:
    topic, group, transaction = (
        TWINS[name] if each == name else each for each in (names.topic, names.group, names.transaction)
    )
    return Names(topic, group, transaction, names.ids)


def _answer(row: Row, version: int, grant: Grant, side: Side, sides: Sides) -> object:
    answer = side.answer(sides.accounts.user(grant), row.request(version, side.names), version)
    side.undo(row.undo)
    return answer


def _is_known(row: Row, line: str) -> bool:
    return any(re.fullmatch(each.row, row.name) and re.search(each.difference, line) for each in KNOWN)
