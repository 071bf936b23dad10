"""Who a certificate makes its client: `ssl.principal.mapping.rules` over the subject's name (KIP-371).

Rules are tried in order: `RULE:pattern/replacement/[LU]` where the pattern matches the whole name, `DEFAULT` always.
The patterns are Java's, run by Python's engine: what that does not know, or reads otherwise, stops the start.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kavka.broker.security.tls.distinguished_name import subject_name
from kavka.config.errors import ConfigError

SETTING: Final = "ssl.principal.mapping.rules"
EVERYBODY: Final = "DEFAULT"
"""The rules by which each certificate's name is a principal's."""
_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|\Z)")
_PARSER: Final = re.compile(_RULE)
_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_TOKENS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|\.", re.DOTALL)
"""What is escaped, a class of characters, or a dot, which in Java is no line's end of any kind."""
_MADE_OF_OTHERS: Final = re.compile(r"\[(?:\\.|&(?!&)|[^\\\[&])*(?:\[|&&)", re.DOTALL)
_ANY: Final = "[^\n\r\x85\u2028\u2029]"
_REFERENCE: Final = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d+)|(\$|\\)", re.DOTALL)


class UnmappedError(ValueError):
    """No rule applies to a certificate's name: its client is nobody, and cannot connect, as in Kafka."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: the name as it is."""
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, match: re.Match[str]) -> str:
        return _expanded(self.replacement, match)


class PrincipalRules:
    """The rules of a listener. Threads: any. Raises ConfigError where they cannot be read."""

    def __init__(self, text: str) -> None:
        self._rules: Final = _parse(text)

    def principal(self, certificate: bytes) -> str:
        """The principal, `User:NAME`, of a client that showed this certificate (DER).

        Raises UnmappedError, and another ValueError for what is no certificate.
        """
        return self.principal_of(subject_name(certificate))

    def principal_of(self, name: str) -> str:
        """The same of a subject's name, as Java writes it. Raises UnmappedError."""
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return f"User:{mapped}"
        raise UnmappedError(f"No rules apply to {name}")


def _parse(text: str) -> tuple[_Rule, ...]:
    rules: list[_Rule] = []
    for split in _SPLITTER.finditer(text.strip()):
        rule = split[1]
        parsed = _PARSER.match(rule)
        if parsed is None or parsed.end() != len(rule):
            raise ConfigError(SETTING, text, f"Invalid rule: `{rule}`")
        if parsed[1] is not None:
            rules.append(_Rule(None, "", ""))
        elif parsed[2] is not None:
            rules.append(_Rule(_compiled(text, parsed[2]), parsed[4], parsed[6] or ""))
    return tuple(rules)


def _compiled(text: str, pattern: str) -> re.Pattern[str]:
    try:
        # As in Java \w, \d and \s know ASCII alone: who maps by them means no other names that look like these.
        return re.compile(_NAMED_GROUP.sub("(?P<", _TOKENS.sub(_as_python, pattern)), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as failure:
        # By flags of Python's own, numbers and parentheses beyond its engine.
        raise ConfigError(SETTING, text, f"the pattern {pattern} cannot be used: {failure}") from None


def _as_python(token: re.Match[str]) -> str:
    """Raises re.error for a class of characters within another, or one that two have in common: Python knows none."""
    text = token[0]
    if _MADE_OF_OTHERS.match(text) is not None:
        raise re.error(f"the class {text} is made of others")
    return _ANY if text == "." else text


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """A replacement as Java's `Matcher` expands it, but that `$9` where there is no group 9 stands for itself."""
    groups = match.re.groups

    def part(found: re.Match[str]) -> str:
        escaped, named, number, _ = found.groups()
        if escaped is not None:
            return escaped
        if named is not None:
            return (match[named] or "") if named in match.re.groupindex else found[0]
        if number is None:
            return found[0]
        # The longest number that is a group's; the digits behind it are text.
        for end in range(len(number), 0, -1):
            if int(number[:end]) <= groups:
                return (match[int(number[:end])] or "") + number[end:]
        return found[0]

    return _REFERENCE.sub(part, replacement)
