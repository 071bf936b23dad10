"""What clients' regular expressions may cost."""

import pytest
import re2

from kavka.coordinator import regular_expressions
from kavka.coordinator.regular_expressions import (
    MAX_LENGTH,
    MAX_REPETITIONS,
    MAX_UNICODE_CLASSES,
    InvalidExpressionError,
    compile_expression,
)


@pytest.mark.parametrize(
    "expression",
    [
        r"\pL" * (MAX_UNICODE_CLASSES + 1),
        r"(?:\pN|\pL)" * 181,
        r"[^\P{Greek}]" * (MAX_UNICODE_CLASSES + 1),
        "x{1000}" * (MAX_REPETITIONS // 1000 + 1),
        "x{1,900}y{1000,}" * 20,
        "[a-z]{1,9}" * 3_000,
        "a{999,}" * 11,
        "[!-[:a:]{1000}]" * 11,
        r"\Qa\E{1000}" * 11,
        r"\\Qa{1000}\\E" * 11,
        r"\x{61}{1000}" * 11,
        r"[\x{61}]{1000}" * 11,
        r"\Q\E\pL" * (MAX_UNICODE_CLASSES + 1),
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_what_would_take_long_to_compile_is_refused_by_its_text(
    monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    monkeypatch.setattr(re2, "compile", None)

    with pytest.raises(InvalidExpressionError, match=r"^it "):
        compile_expression(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (r"\pL" * 10, "abcdefghij"),
        (r"\\pL" * 30, r"\pL" * 30),
        (r"\{9999\}" * 30, "{9999}" * 30),
        ("x{1000}", "x" * 1000),
        ("a{2,}", "aaa"),
        ("a{0,}" * 200, "aaa"),
        (r"id-[\x{4000}-\x{9000}]+", "id-\u5000\u6000"),
        (r"\x{4000}\x{4001}\x{4002}", "\u4000\u4001\u4002"),
        (r"\Q{9000}\pL{9000}\E!", r"{9000}\pL{9000}!"),
        (r"\Q" + r"\pL" * 30, r"\pL" * 30),
        (r"\p{Greek}[\p{Greek}\P{^Greek}]", "\u03b1\u03b1"),
        ("x" * MAX_LENGTH, "x" * MAX_LENGTH),
        ("é+", "éé"),
    ],
)
def test_what_people_write_is_compiled(expression: str, text: str) -> None:
    assert compile_expression(expression).fullmatch(text.encode())


def test_what_is_refused_is_told_why() -> None:
    for expression, reason in (("(", r"missing \)"), ("\ud800", "not Unicode"), (".{1000}" * 9, "too large")):
        with pytest.raises(InvalidExpressionError, match=reason):
            compile_expression(expression)


def test_nothing_is_kept_of_an_expression_that_has_gone() -> None:
    """RE2's own cache holds the last 128 with all their memory."""
    compile_expression("warm")
    kept = re2._Regexp._make.cache_info().currsize

    for number in range(10):
        compile_expression(f"a{number}")

    assert re2._Regexp._make.cache_info().currsize == kept
    assert regular_expressions.MAX_MEMORY_BYTES <= 256 * 1024
