"""The words of a `.proto` text, one after the other."""

import re
from typing import Final

from kavka.pipeline.schemas.errors import SchemaUnusableError

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<mark>[{}\[\]()<>=;,:+\-/])""",
    re.VERBOSE | re.DOTALL,
)
_MAX_TOKENS: Final = 500_000
_MAX_NESTING: Final = 100
_OPENERS: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
END: Final = ""


class Tokens:
    """Looks one word ahead. Every method raises SchemaUnusableError where something else stands there."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None or len(self._tokens) > _MAX_TOKENS:
                raise SchemaUnusableError(f"no .proto text: {text[position : position + 20]!r}")
            if found.lastgroup != "space":
                self._tokens.append((str(found.lastgroup), found[0]))
            position = found.end()
        self._next = 0

    def peek(self, ahead: int = 0) -> str:
        """The next word; END after the last one."""
        place = self._next + ahead
        return self._tokens[place][1] if place < len(self._tokens) else END

    def take(self) -> str:
        token = self.peek()
        if token == END:
            raise SchemaUnusableError("the .proto text ends too early")
        self._next += 1
        return token

    def skip_if(self, token: str) -> bool:
        """Takes the word if it is the next one."""
        if self.peek() != token:
            return False
        self._next += 1
        return True

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if self.take() != token:
                raise self._wrong(repr(token))

    def name(self) -> str:
        """A name, with dots in it or without."""
        return self._of("name", "a name")

    def string(self) -> str:
        """What stands between quotes. Names of files have no escapes."""
        return self._of("string", "a text")[1:-1]

    def integer(self) -> int:
        negative = self.skip_if("-")
        text = self._of("number", "a number")
        try:
            number = int(text, 8 if re.fullmatch(r"0[0-7]+", text) else 0)
        except ValueError:
            raise self._wrong("a whole number") from None
        return -number if negative else number

    def skip_statement(self) -> None:
        """Up to the semicolon, or the end of the block that comes before one."""
        while True:
            token = self.take()
            if token == ";":
                return
            if token in _OPENERS:
                self._skip_to(token)
                if token == "{":
                    self.skip_if(";")
                    return

    def skip_brackets(self) -> None:
        """A field's options, where there are some."""
        if self.skip_if("["):
            self._skip_to("[")

    def _skip_to(self, opener: str) -> None:
        open_ones = [_OPENERS[opener]]
        while open_ones:
            token = self.take()
            if token in _OPENERS:
                open_ones.append(_OPENERS[token])
            elif token == open_ones[-1]:
                open_ones.pop()
            if len(open_ones) > _MAX_NESTING:
                raise SchemaUnusableError("the .proto text is nested too deep")

    def _of(self, kind: str, what: str) -> str:
        if self._next >= len(self._tokens) or self._tokens[self._next][0] != kind:
            raise SchemaUnusableError(f"the .proto text has {self.peek()!r} where {what} belongs")
        return self.take()

    def _wrong(self, what: str) -> SchemaUnusableError:
        return SchemaUnusableError(f"the .proto text has {self.peek(-1)!r} where {what} belongs")
