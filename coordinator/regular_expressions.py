"""Clients' regular expressions: compiled within bounds on length, work and memory.

They run in RE2, in time linear in the text whatever they say, never in Python's own `re`, where one of them could run
for ever. RE2 compiles while it holds the interpreter: so what would take long is refused by a look at its text.
"""

import re
from typing import Any, Final

MAX_LENGTH: Final = 2_000
MAX_MEMORY_BYTES: Final = 256 * 1024
"""Of a compiled expression with its automaton."""
MAX_UNICODE_CLASSES: Final = 20
r"""`\p` and `\P`. A large one takes RE2 up to half a millisecond, and 15 of those do not fit anyway."""
MAX_REPETITIONS: Final = 10_000
"""The sum of what the braces ask for at most, or at least where there is no most: RE2 writes it out, and has room for
10,922 instructions."""

_PARTS: Final = re.compile(
    r"""
    \\Q.*?(?:\\E|\Z)                        # literal text
    |\\x\{[0-9A-Fa-f]*\}                    # one character, not a repeated x
    |(?P<unicode_class>\\[pP])(?:\{[^}]*\})?
    |\\.
    |\{(?P<least>\d{1,4})(?:,(?P<most>\d{0,4}))?\}
    """,
    re.DOTALL | re.VERBOSE,
)
"""What counts. Braces within brackets do too, though they repeat nothing: where a bracket ends is easily misread."""


class InvalidExpressionError(Exception):
    """Why an expression is refused, in half a sentence."""


def compile_expression(expression: str) -> Any:
    """A compiled expression of RE2, which matches bytes of UTF-8. Raises InvalidExpressionError.

    It belongs to the caller: RE2's own cache would keep the last 128, with their automatons, for all time.
    """
    _check_bounds(expression)
    import re2

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    # The class itself: `re2.compile` goes by the cache.
    pattern_class = type(re2.compile(b""))
    try:
        return pattern_class(expression.encode(), options)
    except UnicodeEncodeError:
        raise InvalidExpressionError("it is not Unicode text") from None
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidExpressionError(text) from None


def _check_bounds(expression: str) -> None:
    if len(expression) > MAX_LENGTH:
        raise InvalidExpressionError(f"it is longer than {MAX_LENGTH} characters")
    classes = repetitions = 0
    for part in _PARTS.finditer(expression):
        if part["unicode_class"]:
            classes += 1
        elif part["least"]:
            repetitions += int(part["most"] or part["least"])
    if classes > MAX_UNICODE_CLASSES:
        raise InvalidExpressionError(f"it has more than {MAX_UNICODE_CLASSES} Unicode classes")
    if repetitions > MAX_REPETITIONS:
        raise InvalidExpressionError(f"it repeats more than {MAX_REPETITIONS} times")
