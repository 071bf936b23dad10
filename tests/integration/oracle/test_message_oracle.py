"""Our messages and those of Kafka's generated classes, byte for byte: 3.9 for the old versions, 4.3 for the new."""

from collections import Counter
from pathlib import Path

import pytest

from kavka.protocol.api import VERSIONS, ApiKey, spec
from kavka.protocol.codec import decode, encode
from kavka.protocol.layout import StructLayout, layout_of
from kavka.protocol.schema import Message
from tests.support.java import run_java
from tests.support.message_values import STYLES, message_value

pytestmark = pytest.mark.java

SOURCE = Path(__file__).resolve().parents[2] / "java" / "MessageOracle.java"
SIDES = ("request", "response")
SEEDS = range(4)

Case = tuple[int, str, int]
"""(key, side, version)"""


class Oracle:
    """One bundle's answers, and the versions that it knows of the messages we know."""

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        ranges = self.ask([f"range {key} {side}" for key in VERSIONS for side in SIDES])
        self.cases: list[Case] = []
        self.newer: set[str] = set()
        for (key, side), answer in zip(((key, side) for key in VERSIONS for side in SIDES), ranges, strict=True):
            if answer == "unsupported":
                continue
            lowest, highest = map(int, answer.split())
            if lowest < VERSIONS[key].oldest or highest > VERSIONS[key].newest:
                self.newer.add(f"{ApiKey(key).title} {answer}")
            known = range(max(lowest, VERSIONS[key].oldest), min(highest, VERSIONS[key].newest) + 1)
            self.cases += [(key, side, version) for version in known]

    def ask(self, commands: list[str]) -> list[str]:
        answers = run_java(str(SOURCE), [], bundle=self.bundle, text_in="\n".join(commands) + "\n").splitlines()
        assert len(answers) == len(commands)
        return answers


@pytest.fixture(scope="module", params=["kafka-3.9", "kafka-4.3"])
def oracle(request: pytest.FixtureRequest) -> Oracle:
    return Oracle(request.param)


def test_the_jar_has_no_version_that_we_lack(oracle: Oracle) -> None:
    assert oracle.newer == set()
    assert len(oracle.cases) > 400


def test_kafka_reads_what_we_write_and_writes_the_same(oracle: Oracle) -> None:
    sent = [
        (case, style, encode(message_value(message_class(case), case[2], style, seed), case[2]))
        for case in oracle.cases
        for style in STYLES
        for seed in (SEEDS if style == "full" else SEEDS[:1])
    ]

    answers = oracle.ask([f"rewrite {key} {side} {version} x{wire.hex()}" for (key, side, version), _, wire in sent])

    different = [
        f"{describe(case)} {style}: ours x{wire.hex()}, theirs {answer}"
        for (case, style, wire), answer in zip(sent, answers, strict=True)
        if answer != f"x{wire.hex()}"
    ]
    assert not different, summary(different)


def test_we_read_what_kafka_writes_and_write_the_same(oracle: Oracle) -> None:
    cases = [case for case in oracle.cases if oracle.bundle != "kafka-3.9" or not has_nullable_struct(case)]
    asked = [(case, seed) for case in cases for seed in SEEDS]

    answers = oracle.ask([f"invent {key} {side} {version} {seed}" for (key, side, version), seed in asked])

    different = []
    for (case, _), answer in zip(asked, answers, strict=True):
        assert answer.startswith("x"), f"{describe(case)}: {answer}"
        wire = bytes.fromhex(answer[1:])
        ours = encode(decode(message_class(case), case[2], wire), case[2])
        if ours != wire:
            different.append(f"{describe(case)}: theirs x{wire.hex()}, ours x{ours.hex()}")
    assert not different, summary(different)


def message_class(case: Case) -> type[Message]:
    api = spec(case[0])
    return api.request_class if case[1] == "request" else api.response_class


def has_nullable_struct(case: Case) -> bool:
    """The schemas of 3.9 (not its classes) forget the byte that says whether a struct is null."""
    return nullable_struct_in(layout_of(message_class(case), case[2]))


def nullable_struct_in(layout: StructLayout) -> bool:
    fields = (*layout.regular, *layout.tagged)
    return any(
        (field.kind == "struct" and field.nullable) or (field.layout is not None and nullable_struct_in(field.layout))
        for field in fields
    )


def describe(case: Case) -> str:
    key, side, version = case
    return f"{ApiKey(key).title} {side} v{version}"


def summary(different: list[str]) -> str:
    by_message = Counter(line.split(" v")[0] for line in different)
    return f"{len(different)} differ in {dict(by_message)}; the first: {different[0][:600]}"
