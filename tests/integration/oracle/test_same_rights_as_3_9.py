"""Who may ask what: the same requests by the same users to Kavka and to Apache Kafka 3.9, and the same answers.

A request is a row of the table (`rights/table.py`), with the rights that it needs. Everybody who has them, nearly has
them, or has them otherwise is a user of both brokers.
"""

import importlib
from collections.abc import Iterator

import pytest

from kavka.broker.security.acl import ResourceType
from tests.integration.oracle.rights.comparing import tells_twins_apart, unexpected
from tests.integration.oracle.rights.sides import Sides, both_sides
from tests.integration.oracle.rights.table import ROWS, TWINS, Row, all_grants, others
from tests.support import maven

for _module in ("cluster_rows", "group_rows", "record_rows", "security_rows", "topic_rows", "transaction_rows"):
    importlib.import_module(f"tests.integration.oracle.rights.{_module}")

pytestmark = [pytest.mark.java, pytest.mark.slow]
MOST_TELLING = ("nothing", "exact of", "all but", "deny 0 over")
"""Of the names of grants: those that a quick look asks with."""
HIDDEN = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    maven.classpath("kafka-3.9")
    with both_sides(tmp_path_factory.mktemp("rights")) as both:
        yield both


def each_row() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", [pytest.param(each, id=each.name) for each in ROWS])


@each_row()
def test_who_lacks_a_right_is_answered_as_by_kafka(row: Row, sides: Sides) -> None:
    versions = sides.versions(row.key, row.oldest, row.newest)
    assert versions, "no version is served by both"
    grants = [each for each in all_grants(row) if each.name.startswith(MOST_TELLING)]
    assert unexpected(row, versions[-1:], grants, sides) == []


@each_row()
def test_what_must_not_be_described_is_answered_as_what_is_not_there(row: Row, sides: Sides) -> None:
    if not row.hides:
        return
    (*_, version) = sides.versions(row.key, row.oldest, row.newest)
    told_apart = [
        f"{side}: {need}"
        for needs in row.ways
        for need in needs
        if need.type in HIDDEN and need.name in TWINS
        for side in (sides.kavka, sides.kafka)
        if tells_twins_apart(row, version, sides.accounts.user(others(need, needs)), side, need.name)
    ]
    assert told_apart == []


@pytest.mark.soak
@each_row()
def test_all_versions_and_all_sets_of_rights_are_answered_as_by_kafka(row: Row, sides: Sides) -> None:
    versions = sides.versions(row.key, row.oldest, row.newest)
    assert unexpected(row, versions, all_grants(row), sides) == []
