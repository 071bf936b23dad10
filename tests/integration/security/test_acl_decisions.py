"""Random ACLs, and what Apache Kafka 3.9's own AclAuthorizer decides by them (tests/java/AclOracle.java)."""

import base64
import random
import subprocess

import pytest

from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from tests.support.acl_cases import Question, random_acls, random_question
from tests.support.java_programs import java_command

TYPES = 4
SUPER_USER = "Group:alice"
QUESTIONS = 24


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def upper(name: str) -> str:
    """`DescribeConfigs` as DESCRIBE_CONFIGS."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).lstrip("_").upper()


def compare(seed: int, sets: int) -> int:
    """Ask both about so many sets of ACLs; gives how many decisions were compared."""
    chance = random.Random(seed)
    lines: list[str] = []
    asked: list[Question] = []
    ours: list[str] = []
    for _ in range(sets):
        acls = random_acls(chance, TYPES)
        is_open = chance.random() < 0.3
        decides = AclAuthorizer({SUPER_USER}, lambda: None, allows_unmentioned=is_open)
        decides.swap(acls)
        lines.append(f"new\t{str(is_open).lower()}\t{encoded(SUPER_USER)}")
        for (kind, name, is_prefixed), entries in acls.items():
            pattern = "PREFIXED" if is_prefixed else "LITERAL"
            for entry in entries:
                said = (encoded(entry.principal), entry.host, upper(entry.operation), entry.permission.upper())
                lines.append("\t".join(("acl", upper(kind), pattern, encoded(name), *said)))
        for _ in range(QUESTIONS):
            question = random_question(chance, TYPES)
            principal, host, operation, resource = question
            words = (host, operation.name, resource.type.name, encoded(resource.name))
            lines.append("\t".join(("ask", encoded(principal), *words)))
            rights = decides.rights(principal, host)
            one = rights.unaudited(operation, resource.type)(resource.name)
            some = rights.allows_on_any(operation, resource.type, 1, quiet=True)
            assert rights.allows(operation, resource, 1, quiet=True) is one
            asked.append(question)
            ours.append(f"{int(one)} {int(some)}")
    command = java_command("AclOracle", bundle="kafka-3.9", heap="256m")
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=600, check=True)
    theirs = done.stdout.splitlines()
    assert len(theirs) == len(ours)
    differing = [each for each in zip(asked, ours, theirs, strict=True) if each[1] != each[2]]
    assert differing == []
    assert set(ours) == {"0 0", "0 1", "1 0", "1 1"}, "questions that all have one answer show nothing"
    return 2 * len(ours)


@pytest.mark.java
def test_thousands_of_decisions_are_acl_authorizers() -> None:
    assert compare(seed=3, sets=150) == 7_200


@pytest.mark.java
@pytest.mark.soak
def test_a_hundred_thousand_decisions_are_acl_authorizers() -> None:
    assert sum(compare(seed=random.randrange(1 << 32), sets=1_100) for _ in range(2)) > 100_000
