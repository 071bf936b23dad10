"""docs/client.md: its programs fit what there is; those that need no broker are run."""

import re
from pathlib import Path
from typing import Any

import pytest

from kavka.client import Admin, Consumer, Producer
from tests.support.shown_code import GIVEN, OPEN, blocks, mistakes, public_names

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "client.md").read_text()
SECTIONS = {part.splitlines()[0]: part + "\n" for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
TAKEN_FOR_GIVEN = {
    "Metrics": {"producer", "consumer", "prometheus_client"},
    "Producing": {"producer"},
    "Exactly once": {"positions", "consumer"},
    "Reading records": {"consumer", "numpy", "pool", "work"},
    "Groups": {"consumer", "re"},
    "Administering a cluster": {"admin"},
}
"""By section, what its programs use that an earlier line, or the reader, has made."""
WITHOUT_BROKER = ("Settings", "Errors")


def given(section: str) -> dict[str, Any]:
    return {name: OPEN if name in GIVEN else None for name in TAKEN_FOR_GIVEN.get(section, ())}


@pytest.mark.parametrize("section", SECTIONS)
def test_programs_fit_what_there_is(section: str) -> None:
    names = {**public_names(), **given(section)}
    assert [mistake for program in blocks(SECTIONS[section]) for mistake in mistakes(program, names)] == []


@pytest.mark.parametrize("section", WITHOUT_BROKER)
def test_programs_that_need_no_broker_run(section: str) -> None:
    programs = blocks(SECTIONS[section])
    assert programs
    for program in programs:
        exec(compile(program, section, "exec"), {"Producer": Producer, "Consumer": Consumer, "Admin": Admin})


def test_the_page_begins_with_what_is_to_be_imported() -> None:
    first = PAGE.split("\n## ")[0]
    (program,) = blocks(first)
    assert mistakes(program, {}) == []
    assert program.startswith("from kavka.client import")


def test_every_section_with_programs_is_run_somewhere() -> None:
    """Against a broker by tests/integration/client/test_*_examples.py, each of which names its sections."""
    folder = Path(__file__).resolve().parents[3] / "integration" / "client"
    runners = "".join(path.read_text() for path in folder.glob("test_*_examples.py"))
    with_programs = {name for name, text in SECTIONS.items() if blocks(text)}
    unrun = [name for name in sorted(with_programs) if name not in WITHOUT_BROKER and f'"{name}"' not in runners]
    assert unrun == []
