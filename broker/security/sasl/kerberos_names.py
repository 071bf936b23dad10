"""How Kerberos principals become users' names: `sasl.kerberos.principal.to.local.rules`, as Kafka's KerberosShortNamer.

    RULE:[n:FORMAT](MATCH)s/FROM/TO/g/L     of principals with n parts: FORMAT, with $0 the realm and $1, $2 the parts;
                                            if MATCH fits it; what FROM finds in it replaced; in lower case
    DEFAULT                                 the first part, in the own realm

The first rule that applies counts.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_RULE: Final = re.compile(
    r"(?:(?P<default>DEFAULT)|RULE:\[(?P<parts>\d+):(?P<form>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<find>[^/]*)/(?P<put>[^/]*)/(?P<all>g)?)?)/?(?P<lower>L)?",
    re.ASCII,
)
_PRINCIPAL: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_PARAMETER: Final = re.compile(r"\$(\d*)", re.ASCII)
_JAVA_GROUP: Final = re.compile(r"\\(.)|\$(\d)|(\\)", re.ASCII | re.DOTALL)


class NoNameError(Exception):
    """A principal has no user's name by the rules."""


class _Rule(NamedTuple):
    parts: int
    """0: DEFAULT."""
    form: str
    match: re.Pattern[str] | None
    find: re.Pattern[str] | None
    put: str
    is_for_all: bool
    is_lower: bool


class LocalNames:
    """The rules of one listener. Immutable."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """Raises ValueError for a rule that cannot be read."""
        self._rules = [_rule(each) for each in rules]
        self._default_realm = default_realm

    def name_of(self, principal: str) -> str:
        """The user's name of a principal as `alice/host@REALM`. Raises NoNameError."""
        found = _PRINCIPAL.fullmatch(principal)
        if found is None:
            if "@" in principal or not principal:
                raise NoNameError("the principal has no form that is known")
            return principal
        first, second, realm = found[1], found[2], found[3]
        parameters = [realm, first] if second is None else [realm, first, second]
        for rule in self._rules:
            name = self._applied(rule, parameters)
            if name is None:
                continue
            if not name or "/" in name or "@" in name:
                raise NoNameError("a rule makes a name of the principal that is none")
            return name.lower() if rule.is_lower else name
        raise NoNameError("no rule applies to the principal")

    def _applied(self, rule: _Rule, parameters: list[str]) -> str | None:
        if rule.parts == 0:
            return parameters[1] if parameters[0] == self._default_realm else None
        if len(parameters) - 1 != rule.parts:
            return None
        base = _PARAMETER.sub(lambda found: _parameter(found[1], parameters), rule.form)
        if rule.match is not None and rule.match.fullmatch(base) is None:
            return None
        if rule.find is None:
            return base
        return rule.find.sub(rule.put, base, count=0 if rule.is_for_all else 1)


def _rule(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid rule: {text}")
    is_lower = found["lower"] is not None
    if found["default"] is not None:
        return _Rule(0, "", None, None, "", False, is_lower=False)
    if int(found["parts"]) == 0:
        raise ValueError(f"Invalid rule: {text}")
    try:
        # As in Java \w and \d know ASCII alone.
        match = None if found["match"] is None else re.compile(found["match"], re.ASCII)
        find = None if found["find"] is None else re.compile(found["find"], re.ASCII)
        put = _python_replacement(found["put"] or "")
        if find is not None:
            find.sub(put, "")
    except (re.error, IndexError) as problem:
        raise ValueError(f"Invalid rule: {text}: {problem}") from None
    return _Rule(int(found["parts"]), found["form"], match, find, put, found["all"] is not None, is_lower)


def _parameter(number: str, parameters: list[str]) -> str:
    if not number or int(number) >= len(parameters):
        raise NoNameError("a rule names a part that the principal has not")
    return parameters[int(number)]


def _python_replacement(text: str) -> str:
    """Java's `$1` as Python's `\\g<1>`."""

    def piece(found: re.Match[str]) -> str:
        if found[2] is not None:
            return f"\\g<{found[2]}>"
        return re.escape(found[1]) if found[1] is not None and found[1] == "\\" else found[1] or "\\\\"

    return _JAVA_GROUP.sub(piece, text)
