"""Clients' rows and refusals are those of Apache Kafka 4.3.1 (golden/clients-4.3.txt, written by its own classes)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kavka.config.clients import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from kavka.config.clients.without_effect import why_without_effect
from kavka.config.errors import ConfigError

GOLDEN = Path(__file__).parents[1] / "golden" / "clients-4.3.txt"
LINES = [line.split("|") for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
KINDS: dict[str, type[CommonSettings]] = {"P": ProducerSettings, "C": ConsumerSettings, "A": AdminSettings}
MAKERS: dict[str, Callable[[dict[str, Any]], CommonSettings]] = {
    "P": producer_settings,
    "C": consumer_settings,
    "A": admin_settings,
}
SETTINGS = [line for line in LINES if line[0] in KINDS]
SAID = [line for line in LINES if line[0] == "V"]
NOT_REQUIRED = ("(required)", "null", "")
"""Kafka asks for serializers and servers; here bytes need none, and servers are missed when they are needed."""
OF_3_9 = {"internal.leave.group.on.close"}
"""4.3 has them no more, and programs written for clients before it may still give them."""
WORDED_OTHERWISE = {"partitioner.class;": "what it names is looked up by the producer, not by its settings"}


@pytest.mark.parametrize("line", SETTINGS, ids=lambda line: f"{line[0]}-{line[1]}")
def test_a_setting_is_a_row_like_kafkas_or_says_that_it_does_nothing(line: list[str]) -> None:
    kind, name, type_name, importance, default, allowed, _ = line
    row = KINDS[kind].ROWS.get(name)
    if row is None:
        assert why_without_effect(name), "neither a row nor known to do nothing"
        return
    assert row.type.name == type_name
    if row is not CommonSettings.ROWS.get(name):
        # Of what all clients have Kafka's differ in how important it is to them.
        assert row.importance.name == importance
    if name == "partition.assignment.strategy":
        default = default.replace("class ", "")
    assert (row.default_text or "") == (default if default not in NOT_REQUIRED else "")
    if allowed:
        assert str(row.check) == allowed


def test_there_are_no_other_rows_but_kavkas_own() -> None:
    for kind, group in KINDS.items():
        others = group.ROWS.keys() - {name for each, name, *_ in SETTINGS if each == kind} - OF_3_9
        assert [name for name in others if not name.startswith("kavka.")] == []


@pytest.mark.parametrize("line", SAID, ids=lambda line: f"{line[1]}-{line[2]}")
def test_values_are_refused_in_kafkas_words(line: list[str]) -> None:
    _, kind, pairs, expected = line
    if pairs in WORDED_OTHERWISE:
        return
    parts = pairs.split(";")
    given = dict(zip(parts[::2], parts[1::2], strict=True))
    said = "ok"
    try:
        MAKERS[kind](given)
    except ConfigError as error:
        said = str(error)
    if expected == "ok" and "timeout.ms" in pairs:
        # Kafka's clients check these when they are made, not their settings.
        return
    assert said == expected
