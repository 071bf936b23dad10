"""docs/client.md maps the names of kafka-python's and confluent's clients to ours: each of them is there."""

import inspect
import re
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.producer.future
import pytest

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "client.md").read_text()
KINDS = {
    "Producing": (kafka.KafkaProducer, confluent_kafka.Producer),
    "Consuming": (kafka.KafkaConsumer, confluent_kafka.Consumer),
    "Administering": (kafka.KafkaAdminClient, confluent_kafka.admin.AdminClient),
}
"""By heading, whose methods the second and third columns name."""
SETTINGS = {"stats_cb"}
"""What is no method, but a setting of librdkafka's."""
COLUMNS = ("kafka-python", "confluent-kafka")
PLACES = ((kafka, kafka.producer.future), (confluent_kafka,))
"""Where what is no method is found."""


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    table = re.search(r"(?:^\|.*\n?)+", section, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in table[0].splitlines()[2:]]


def named(cell: str) -> list[str]:
    """The names in a cell, without what stands in their brackets."""
    return [name for name in re.findall(r"`([A-Za-z_]+)", cell) if name not in SETTINGS]


CASES = [
    (heading, column, name)
    for heading in KINDS
    for column in (0, 1)
    for row in rows(heading)
    for name in named(row[column + 1])
    if not name.startswith("for")
]


@pytest.mark.parametrize(("heading", "column", "name"), CASES, ids=str)
def test_a_name_of_another_client_is_there(heading: str, column: int, name: str) -> None:
    client: Any = KINDS[heading][column]
    assert any(hasattr(place, name) for place in (client, *PLACES[column])), f"{COLUMNS[column]} has no {name}"


def test_there_are_names_to_look_for() -> None:
    assert len(CASES) > 120
    assert all(len(row) == 4 for heading in KINDS for row in rows(heading))


@pytest.mark.parametrize("heading", KINDS)
def test_what_a_library_can_do_is_on_the_page_or_left_out_for_a_reason(heading: str) -> None:
    """A dash says that a library has nothing of the kind: then no method of it is called the same as ours.

    Unless that is something else, and in another row.
    """
    wrong = []
    for _, *cells, ours in rows(heading):
        for column, cell in enumerate(cells):
            if cell == "-":
                methods = {name for name, _ in inspect.getmembers(KINDS[heading][column], callable)}
                elsewhere = {name for row in rows(heading) for name in named(row[column + 1])}
                wrong += [name for name in re.findall(r"([a-z_]+)`", ours) if name in methods - elsewhere]
    assert wrong == []
