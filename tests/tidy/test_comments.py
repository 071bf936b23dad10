"""What a text may say: exceptions to the checkers give their reason, and nothing points outside the repository."""

import io
import re
import tokenize
from pathlib import Path

from tests.tidy.sources import own_files, python_files, relative

EXCEPTION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover|fmt:\s*(off|skip))(:?\s*[A-Z]+\d+,?|\[[^\]]*\])*")
LEAST_REASON_CHARACTERS = 10
# Put together here, so that this file does not find itself.
OUTSIDE = ("/".join(("..", "shared")), "/".join(("", "work", "shared")), "/".join(("", "work", "main")), "/tmp/" + "w/")


def test_an_exception_to_a_checker_gives_its_reason() -> None:
    bare = []
    for path in python_files():
        for line, comment in _comments(path):
            found = EXCEPTION.search(comment)
            if found and len(comment[found.end() :].strip(" -#:")) < LEAST_REASON_CHARACTERS:
                bare.append(f"{relative(path)}:{line}: {comment}")
    assert bare == [], "\n".join(bare)


def test_nothing_points_outside_the_repository() -> None:
    found = []
    for path in own_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{relative(path)}: {place}" for place in OUTSIDE if place in text]
    assert found == [], "\n".join(found)


def _comments(path: Path) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
