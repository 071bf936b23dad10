"""Playing scenarios on two brokers and telling what they answer differently."""

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.integration.oracle.answers.stage import KAFKA_39, KAFKA_43, SCENARIOS, Scenario, Stage, differences
from tests.support.wire import Wire


class Known(NamedTuple):
    """A difference that is meant: in a scenario (a pattern), under a label (a pattern), found in its line (a pattern).

    The line is `path: kavka ..., kafka ...`. `oracle` names the one Kafka that differs, where only one does;
    `sometimes` says that it takes luck to see the difference.
    """

    scenario: str
    label: str
    difference: str
    reason: str
    oracle: str = ""
    sometimes: bool = False


PLAYS: Final = 3
STUMBLES: Final = "error_code: kavka 'NONE', kafka 'UNKNOWN_SERVER_ERROR'"
HAS_NOTHING: Final = rf"{STUMBLES}|: kavka .*, kafka (-1|\[\]|None)$"
"""Kafka stumbles, so that it has no offsets and no records where Kavka has some."""
NOT_IN_39: Final = (
    r"configs\.(add\.partitions|config\.providers|controller\.quorum|cordoned|follower\.fetch|"
    r"group\.(share|streams|consumer\.(min\.|max\.|)assignment|consumer\.migration)|"
    r"group\.coordinator\.(background|cached)|remote\.|sasl\.oauthbearer|share\.|transaction\.two)"
    r".*: kavka None, kafka \{"
)
OTHERWISE_IN_43: Final = (
    r"configs\.(controller\.(listener\.names|quorum\.bootstrap\.servers)|early\.start\.listeners|group\.consumer\.assignors|"
    r"group\.coordinator\.(append\.linger\.ms|threads)|group\.share\.(max\.size|partition\.max\.record\.locks)|"
    r"log\.message\.timestamp\.after\.max\.ms|metric\.reporters|min\.insync\.replicas|node\.id|process\.roles|"
    r"num\.recovery\.threads\.per\.data\.dir|remote\.log\.(manager\.(copier\.|expiration\.|)thread\.pool\.size|reader\.threads)|"
    r"sasl\.oauthbearer\.expected\.audience)\.(value|synonyms|config_source|config_type|read_only)"
)


KNOWN: Final = [
    # Produce
    Known(
        "malformed_batches_are_refused",
        "codec 5",
        "kafka ('UNKNOWN_SERVER_ERROR'|0)$",
        "Kafka stumbles, after it appended nothing",
    ),
    Known(
        "malformed_batches_are_refused",
        "magic 3",
        "error_message: kavka None",
        "Kafka answers the whole request with words",
    ),
    Known(
        "malformed_batches_are_refused",
        "claims gzip",
        f"{STUMBLES}|base_offset: .*, kafka -1$",
        "records are not unpacked (kavka.validate.records)",
    ),
    Known(
        "timestamps_have_default_bounds",
        "far in the future",
        "kafka 'INVALID_TIMESTAMP'$|base_offset: .*, kafka -1$|record_errors: kavka \\[\\]|error_message: kavka None",
        "4.x has another message.timestamp.after.max.ms",
        KAFKA_43,
    ),
    Known(
        "transactional_batches_.*",
        "an old epoch",
        "log_start_offset",
        "as in 4.3; 3.9 asks no coordinator here",
        KAFKA_39,
    ),
    # Fetch
    Known("limits_are_kept", ".* limit -1", HAS_NOTHING, "Kafka stumbles over a negative limit; to Kavka it is 0"),
    Known("limits_are_kept", "whole limit -1", r"records: kavka \[\], kafka \[", "Kafka's limit serves the next one"),
    Known(
        "isolation_levels_are_served", "level 2", HAS_NOTHING, "Kafka stumbles over unknown levels; to Kavka they are 0"
    ),
    Known(
        "offsets_are_found_by_time", "level 2", HAS_NOTHING, "Kafka stumbles over unknown levels; to Kavka they are 0"
    ),
    Known("old_versions_get_old_formats", "written old", "records: ", "Kafka stops within the size before conversion"),
    # Metadata and the like
    Known(
        "topics_are_created_when_asked_for",
        ".*",
        "error_code: kavka '(LEADER_NOT_AVAILABLE|INVALID_TOPIC_EXCEPTION)', kafka 'UNKNOWN_TOPIC_OR_PARTITION'",
        "as in 3.9; 4.3 never says more than that it doesn't know the topic",
        KAFKA_43,
    ),
    Known(
        "topics_are_found_by_id",
        "neither",
        r"kafka 'UNKNOWN_SERVER_ERROR'$|(brokers|cluster_id|controller_id): .*, kafka (-1|\[\]|None)$",
        "Kafka stumbles",
    ),
    Known(
        "topics_are_found_by_id",
        "by id and by name",
        r"topics: kavka \[\{.*\}, \{.*\}\], kafka \[",
        "Kafka leaves one out",
    ),
    Known(
        "nothing_is_being_reassigned",
        ".*",
        "error_message: kavka None",
        "3.9 has an empty string, 4.3 null",
        KAFKA_39,
    ),
    Known(
        "features_are_not_changed", ".*", "error_|results", "3.9 refuses each by itself with INVALID_REQUEST", KAFKA_39
    ),
    Known(
        "segment_starts_are_listed",
        "-1 of .*",
        STUMBLES,
        "Kafka stumbles over a negative count",
        KAFKA_39,
    ),
    Known(
        "unknown_places_have_no_offsets",
        ".* twice|no partitions",
        r"(topics|partitions): kavka \[",
        "as in 3.9; 4.3 leaves some out",
        KAFKA_43,
    ),
    # Transactions
    Known(
        "transactions_time_out|transactions_are_fenced",
        r".*\.back-\d: (comes back( again)?|goes on|another)|.*: comes back then",
        r"kavka 'NONE', kafka '(PRODUCER_FENCED|INVALID_PRODUCER_EPOCH)'$|"
        r"producer_id: kavka 'given', kafka -1$|producer_epoch: kavka [12], kafka -1$|\]: kavka 3, kafka 2$",
        "as in 4.3, where the producer may come back",
        KAFKA_39,
    ),
    Known(
        "transactions_of_.*",
        r".*\.commit-5: ends( again)?|again, the other way",
        "kavka 'PRODUCER_FENCED', kafka 'INVALID_TXN_STATE'",
        "4.3.1 lacks KAFKA-20785",
    ),
    # Groups and offsets
    Known(
        "offsets_are_committed_without_a_group",
        "unknown group",
        "'ILLEGAL_GENERATION'$",
        "as in 4.3; 3.9 has it in v9",
        KAFKA_39,
    ),
    Known(
        "groups_are_described",
        "operations",
        ".*authorized_operations",
        "as in 3.9; 4.3's groups have configs",
        KAFKA_43,
    ),
    # Topics
    Known(
        "topics_are_created",
        "the same twice",
        r"topics: kavka \[\{",
        "one entry as in 4.3; 3.9 answers twice",
        KAFKA_39,
    ),
    Known(
        "topics_are_created",
        "dry run",
        "topic_id",
        "as in 4.3; 3.9 has no id for a topic that is not created",
        KAFKA_39,
    ),
    Known(
        "timeouts_of_nothing.*",
        "timeout (0|-1)",
        "topic_id",
        "3.9 names the id of a topic that still comes",
        KAFKA_39,
        sometimes=True,
    ),
    Known(
        "timeouts_of_nothing.*",
        "timeout 0, illegal",
        "'REQUEST_TIMED_OUT'$|message: .*None$",
        "4.3 looks at the clock first",
        KAFKA_43,
    ),
    Known("topics_are_deleted_.*", ".*", "error_message: kavka 'worded'", "as in 4.3; 3.9 has no words", KAFKA_39),
    Known(
        "topics_are_deleted_by_name", "twice", r"responses: kavka \[\{", "3.9 answers twice; Kavka deletes", KAFKA_39
    ),
    Known(
        "topics_are_deleted_by_name", "twice", "'INVALID_REQUEST'$|'worded'$", "4.3 refuses; Kavka deletes", KAFKA_43
    ),
    Known(
        "topics_are_deleted_by_id_too",
        "by id again",
        "name: kavka None|error_code: kavka 'UNKNOWN_TOPIC_ID'",
        "3.9 knows the name until the deletion is done",
        KAFKA_39,
        sometimes=True,
    ),
    Known("topics_are_deleted_by_id_too", "by name", "topic_id", "as in 4.3; 3.9 leaves the id out", KAFKA_39),
    Known(
        "topics_are_deleted_by_id_too",
        "neither|id twice",
        "name: kavka None|error_code: kavka 'INVALID_REQUEST'",
        "as in 4.3",
        KAFKA_39,
    ),
    Known("topics_are_deleted_by_id_too", "id twice", r"responses: kavka \[\{", "4.3 answers doubles once", KAFKA_43),
    Known("topics_grow", "(unknown|illegal) topic", "error_message", "as in 3.9; 4.3 has no words", KAFKA_43),
    # Configurations
    Known(
        ".*configs.*",
        ".*",
        r"\.is_default: kavka True",
        "3.9 never sets it in v0; Kavka still tells the truth",
        KAFKA_39,
    ),
    Known(
        ".*", ".*", r"configs\.(message\.timestamp\.after|min\.insync\.replicas)", "4.x has other defaults", KAFKA_43
    ),
    Known(
        ".*",
        ".*",
        r"configs\.message\.(downconversion\.enable|format\.version|timestamp\.difference\.max\.ms): .*, kafka None$",
        "4.x dropped them",
        KAFKA_43,
    ),
    Known("brokers_configs_.*", "all", NOT_IN_39, "came with 4.x", KAFKA_43),
    Known("brokers_configs_.*", "all", OTHERWISE_IN_43, "other types and defaults, or KRaft", KAFKA_43),
    Known("brokers_configs_.*", "all", r"alter\.config\.policy\.kraft", "of KRaft only", KAFKA_39),
    Known("brokers_configs_.*", "all", r": kavka \{.*\}, kafka None$", "Kavka's own, and ZooKeeper's in 4.3"),
    Known(
        "brokers_configs_are_described",
        "all",
        r"configs\.(zookeeper|broker\.session|log\.dirs?\.|listeners|advertised\.listeners|num\.(network|io)\.threads|"
        r"socket\.(send|receive)\.buffer)[a-z.]*(value|synonyms|config_source|config_type|read_only)",
        "set otherwise for the test, or by default",
    ),
    Known("brokers_configs_are_described", "all", r"group\.coordinator\.rebalance", "both protocols are on in Kavka"),
    Known(".*configs.*", "illegal topic", "error_code", "as in 3.9; 4.3 checks the name", KAFKA_43),
    Known("configs_are_altered_.*", "operation 9", "'UNKNOWN_SERVER_ERROR'$|message: .*None$", "Kafka stumbles"),
    Known(
        "other_resources_.*", "type 16", r"kafka 'NONE'$|kafka \{", "client metrics came with 4.x, and KRaft", KAFKA_43
    ),
    Known(
        "(other_resources|groups_configs)_.*",
        "(type 32|.* group).*",
        r"kafka 'INVALID_REQUEST'$|configs\.consumer\.[a-z.]*: .*, kafka None$",
        "in 4.x only",
        KAFKA_39,
    ),
    Known(
        "(other_resources|groups_configs)_.*",
        "(type 32|.* group).*",
        r"configs\.(share|streams|consumer\.assignment)\.[a-z.]*: kavka None",
        "of groups that 3.9 has not, and assignments in the background",
        KAFKA_43,
    ),
]


def versions_to_play(scenario: Scenario, oracle: str, kavka: Wire, kafka: Wire) -> list[int]:
    """All that both serve; for 4.3, which 3.9 covers but for the newest, the two newest."""
    ours, theirs = kavka.ranges.get(scenario.key), kafka.ranges.get(scenario.key)
    if ours is None or theirs is None:
        return []
    oldest = max(scenario.oldest, ours[0], theirs[0])
    newest = min(scenario.newest, ours[1], theirs[1])
    found = list(range(oldest, newest + 1))
    return found[-2:] if oracle == KAFKA_43 else found


@dataclass
class Met:
    """Which scenarios were played to their end, and which rows of the table were met on the way. Beside one oracle."""

    scenarios: set[str] = field(default_factory=set)
    rows: set[Known] = field(default_factory=set)


def unexpected(scenario: Scenario, oracle: str, kavka: Wire, kafka: Wire, met: Met) -> list[str]:
    """What differs and is not known, one line each: only what differs each time that the scenario is played.

    On a busy machine a short rebalance or transaction of a scenario's may be over before the next request comes, on
    either side.
    """
    found = []
    versions = versions_to_play(scenario, oracle, kavka, kafka)
    assert versions, f"{scenario.name} has no version that both serve: name the oracles that have one"
    for version in versions:
        lines: list[str] = []
        for again in range(PLAYS):
            name = f"{scenario.name[:60]}-{oracle[-3:]}-{version}{f'-again-{again}' if again else ''}"
            ours, theirs = (play(scenario, client, version, name) for client in (kavka, kafka))
            lines = unknown_differences(scenario, oracle, ours, theirs, met)
            if not lines:
                break
        found += lines
    met.scenarios.add(scenario.name)
    return found


def unknown_differences(scenario: Scenario, oracle: str, ours: Stage, theirs: Stage, met: Met) -> list[str]:
    """What differs between two plays and stands in no row of the table; rows that are met are noted."""
    labels = [label for label, _ in ours.transcript], [label for label, _ in theirs.transcript]
    if labels[0] != labels[1]:
        return [f"the scripts went different ways: {labels}"]
    found = []
    for (label, our_answer), (_, their_answer) in zip(ours.transcript, theirs.transcript, strict=True):
        for line in differences(our_answer, their_answer):
            rows = known_rows(scenario, oracle, label, line)
            met.rows.update(rows)
            found += [] if rows else [f"v{ours.version} {label}: {line}"]
    return found


def unneeded(oracle: str, met: Met) -> list[str]:
    """The rows that allow what does not differ from this oracle: of those whose scenarios were all played."""
    return [
        f"{row.scenario}, {row.label}: {row.difference}"
        for row in KNOWN
        if row.oracle in ("", oracle)
        and not row.sometimes
        and row not in met.rows
        and _names_of(row, oracle)
        and _names_of(row, oracle) <= met.scenarios
    ]


def play(scenario: Scenario, client: Wire, version: int, name: str) -> Stage:
    """One broker's side."""
    stage = Stage(client, version, name)
    scenario.play(stage)
    return stage


def known_rows(scenario: Scenario, oracle: str, label: str, line: str) -> list[Known]:
    """The rows of the table that the difference stands in."""
    return [
        row
        for row in KNOWN
        if row.oracle in ("", oracle)
        and re.fullmatch(row.scenario, scenario.name)
        and re.fullmatch(row.label, label)
        and re.search(row.difference, line)
    ]


def _names_of(row: Known, oracle: str) -> set[str]:
    """The scenarios that a row is about and this oracle plays."""
    return {each.name for each in SCENARIOS if oracle in each.oracles and re.fullmatch(row.scenario, each.name)}
