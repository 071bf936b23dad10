"""Playing scenarios on two brokers and telling what they answer differently."""

import re
from typing import Final, NamedTuple

from tests.integration.oracle.answers.stage import KAFKA_43, Scenario, Stage, differences
from tests.support.wire import Wire


class Known(NamedTuple):
    """A difference that is meant: in a scenario (a pattern), under a label (a pattern), at a path (a pattern)."""

    scenario: str
    label: str
    path: str
    reason: str


KNOWN: Final = [
    # Produce
    Known("malformed_batches_are_refused", "codec 5", "", "Kafka stumbles (UNKNOWN_SERVER_ERROR)"),
    Known("malformed_batches_are_refused", "magic 3", "error_message", "Kafka answers the whole request with words"),
    Known("malformed_batches_are_refused", "claims gzip", "", "records are not unpacked (kavka.validate.records)"),
    Known("timestamps_have_default_bounds", "far in the future", "", "4.x has another message.timestamp.after.max.ms"),
    Known("transactional_batches_.*", "an old epoch", "log_start_offset", "as in 4.3; 3.9 asks no coordinator here"),
    # Fetch
    Known("limits_are_kept", ".* limit -1", "", "Kafka stumbles over a negative limit; to Kavka it is 0"),
    Known("isolation_levels_are_served", "level 2", "", "Kafka stumbles over unknown levels; to Kavka they are 0"),
    Known("offsets_are_found_by_time", "level 2", "", "Kafka stumbles over unknown levels; to Kavka they are 0"),
    Known("old_versions_get_old_formats", "written old", "records", "Kafka stops within the size before conversion"),
    Known("pipelined_.*", "answer 3", "", "a parked fetch lets the next request run, and so may see what it wrote"),
    # Metadata and the like
    Known(
        "topics_are_created_when_asked_for",
        ".*",
        "error_code: kavka '(LEADER_NOT_AVAILABLE|INVALID_TOPIC_EXCEPTION)', kafka 'UNKNOWN_TOPIC_OR_PARTITION'",
        "as in 3.9; 4.3 never says more than that it doesn't know the topic",
    ),
    Known(
        "topics_are_found_by_id",
        "neither|by id and by name",
        "",
        "Kafka stumbles, or leaves one out",
    ),
    Known(
        "nothing_is_being_reassigned",
        ".*",
        "error_message: kavka None",
        "3.9 has an empty string, 4.3 null",
    ),
    Known(
        "unknown_places_have_no_offsets",
        ".* twice|no partitions",
        "",
        "as in 3.9; 4.3 leaves some out",
    ),
    # Transactions
    Known(
        "transactions_time_out|transactions_are_fenced",
        r".*\.back-\d: (comes back( again)?|goes on|another)|.*: comes back then",
        "",
        "as in 4.3, where the producer may come back",
    ),
    Known(
        "transactions_of_.*",
        r".*\.commit-5: ends( again)?|again, the other way",
        "kavka 'PRODUCER_FENCED', kafka 'INVALID_TXN_STATE'",
        "4.3.1 lacks KAFKA-20785",
    ),
    # Groups and offsets
    Known("offsets_are_committed_without_a_group", "unknown group", "", "as in 4.3; 3.9 has ILLEGAL_GENERATION in v9"),
    Known(
        "groups_are_described",
        "operations",
        ".*authorized_operations",
        "as in 4.3; 3.9's groups have no configs",
    ),
    # Topics
    Known("topics_are_created", "the same twice", "", "one entry as in 4.3; 3.9 answers twice"),
    Known("topics_are_created", "dry run", "topic_id", "as in 4.3; 3.9 has no id for a topic that is not created"),
    Known("timeouts_of_nothing.*", "timeout (0|-1)", "topic_id", "3.9 names the id of a topic that still comes"),
    Known("timeouts_of_nothing.*", "timeout 0, illegal", "", "as in 3.9; 4.3 looks at the clock first"),
    Known("topics_are_deleted_.*", ".*", "error_message", "as in 4.3; 3.9 has no words"),
    Known("topics_are_deleted_by_name", "twice", "", "3.9 answers twice, 4.3 refuses; Kavka deletes"),
    Known("topics_are_deleted_by_id_too", "by id again", "", "3.9 knows the name until the deletion is done"),
    Known("topics_are_deleted_by_id_too", "by name", "topic_id", "as in 4.3; 3.9 leaves the id out"),
    Known("topics_are_deleted_by_id_too", "neither|id twice", "", "3.9 differs from 4.3, 4.3 answers doubles once"),
    Known("topics_grow", "(unknown|illegal) topic", "error_message", "as in 3.9; 4.3 has no words"),
    # Configurations
    Known(".*configs.*", ".*", "is_default", "3.9 never sets it in v0; Kavka still tells the truth"),
    Known(
        "brokers_configs_are_described",
        "all",
        r"configs\.(zookeeper|log\.dirs?\.|listeners|advertised\.listeners|num\.(network|io)\.threads|"
        r"socket\.(send|receive)\.buffer)",
        "set otherwise for the test, or by default",
    ),
    Known("brokers_configs_are_described", "all", r"group\.coordinator\.rebalance", "both protocols are on in Kavka"),
    Known(".*configs.*", "illegal topic", "error_code", "as in 3.9; 4.3 checks the name"),
    Known("configs_are_altered_.*", "operation 9", "", "Kafka stumbles (UNKNOWN_SERVER_ERROR)"),
    Known("other_resources_.*", "type 16", "", "client metrics came with 4.x, and KRaft"),
    Known("(other_resources|groups_configs)_.*", "(type 32|.* group).*", "kafka 'INVALID_REQUEST'", "in 4.x only"),
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


def unexpected(scenario: Scenario, oracle: str, kavka: Wire, kafka: Wire) -> list[str]:
    """What differs and is not known, one line each."""
    found = []
    for version in versions_to_play(scenario, oracle, kavka, kafka):
        name = f"{scenario.name[:60]}-{oracle[-3:]}-{version}"
        ours, theirs = (play(scenario, client, version, name) for client in (kavka, kafka))
        labels = [label for label, _ in ours.transcript], [label for label, _ in theirs.transcript]
        assert labels[0] == labels[1], f"the scripts went different ways: {labels}"
        for (label, our_answer), (_, their_answer) in zip(ours.transcript, theirs.transcript, strict=True):
            lines = differences(our_answer, their_answer)
            found += [f"v{version} {label}: {line}" for line in lines if not is_known(scenario, oracle, label, line)]
    return found


def play(scenario: Scenario, client: Wire, version: int, name: str) -> Stage:
    """One broker's side."""
    stage = Stage(client, version, name)
    scenario.play(stage)
    return stage


def is_known(scenario: Scenario, oracle: str, label: str, line: str) -> bool:
    """Whether the difference stands in the table, or is of a configuration or default that 3.9 did not have."""
    if oracle == KAFKA_43 and "configs" in line:
        return True
    return any(
        re.fullmatch(row.scenario, scenario.name) and re.fullmatch(row.label, label) and re.search(row.path, line)
        for row in KNOWN
    )
