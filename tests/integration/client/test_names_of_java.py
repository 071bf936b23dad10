"""docs/client.md maps the names of Java's clients to ours: each is in Kafka's jars. No JVM is needed for that."""

import os
import re
import zipfile
from pathlib import Path

import pytest

from kavka.client import admin
from tests.support import maven
from tests.support.console_blocks import ROOT

PAGE = (ROOT / "docs" / "client.md").read_text()
CLASSES = {
    "Producing": ("org/apache/kafka/clients/producer/KafkaProducer",),
    "Consuming": ("org/apache/kafka/clients/consumer/KafkaConsumer",),
    "Administering": ("org/apache/kafka/clients/admin/Admin",),
}
NO_METHODS = {"Future"}
ITSELF = {"Admin", "ItemErrors", "QuotaFilter"}
"""No types of what methods take or return."""

pytestmark = pytest.mark.java


def jar(bundle: str) -> zipfile.ZipFile:
    (path,) = [
        each for each in maven.classpath(bundle).split(os.pathsep) if Path(each).name.startswith("kafka-clients-")
    ]
    return zipfile.ZipFile(path)


def texts(archive: zipfile.ZipFile, names: tuple[str, ...]) -> bytes:
    return b"".join(archive.read(f"{name}.class") for name in names)


def has(content: bytes, name: str) -> bool:
    """Whether a class file's constants have this text: one byte for its kind, two for its length, and the text."""
    return b"\x01" + len(name).to_bytes(2, "big") + name.encode() in content


@pytest.mark.parametrize("heading", CLASSES)
def test_methods_of_javas_clients_are_there(heading: str) -> None:
    section = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    with jar("kafka-4.3") as newer, jar("kafka-3.9") as older:
        now, before = (texts(each, CLASSES[heading]) for each in (newer, older))
    absent = []
    for cell in first:
        content = before if "removed in 4.0" in cell else now
        names = [name for name in re.findall(r"`([A-Za-z]+)", cell) if name not in NO_METHODS]
        absent += [name for name in names if not has(content, name)]
    assert len(first) > 10
    assert absent == []


def test_types_have_javas_names_or_are_on_the_page() -> None:
    with jar("kafka-4.3") as archive:
        simple = {re.split(r"[/$]", name)[-1].removesuffix(".class") for name in archive.namelist()}
    section = PAGE.split("### Types\n")[1].split("\n#")[0]
    table = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    theirs = {name for cell, _ in table for name in re.findall(r"`(?:\w+\.)?(\w+)`", cell)}
    ours = {name for _, cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert theirs - simple == set(), "Java has no such class"
    assert {name for name in ours - set(admin.__all__) if name[0].isupper()} == set()
    others = set(admin.__all__) - simple - ITSELF
    assert others - ours == set(), "neither Java's name nor on the page"
