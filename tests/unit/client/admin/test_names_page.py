"""docs/client.md names every method of ours, and none that is not there."""

import re
from pathlib import Path

import pytest

from kavka.client.admin import Admin
from kavka.client.consumer.consumer import Consumer
from kavka.client.producer.producer import Producer

PAGE = Path(__file__).resolve().parents[4] / "docs" / "client.md"


def ours(heading: str) -> str:
    """The last column below a heading."""
    section = PAGE.read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [line.rstrip(" |").rpartition("|")[2] for line in section.splitlines() if line.startswith("| ")]
    return "\n".join(rows)


def public(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")} - {"settings"}


def test_the_page_names_the_administrators_methods() -> None:
    assert set(re.findall(r"`([a-z_]+)`", ours("Administering"))) == public(Admin)


@pytest.mark.parametrize(("heading", "client"), [("Producing", Producer), ("Consuming", Consumer)])
def test_the_page_names_what_producers_and_consumers_do(heading: str, client: type) -> None:
    assert set(re.findall(rf"`{client.__name__}\.([a-z_]+)", ours(heading))) == public(client)
