"""A certificate's subject as Java writes it: RFC 2253, from `X500Principal.getName()`, byte for byte.

Unlike other writers of RFC 2253 it knows nine keywords only; any other attribute is its number and the value's DER,
`1.2.840.113549.1.9.1=#1603...`. Rules and ACLs are written against this text. OpenSSL has verified the certificate
before, but what is in its subject is whatever its authority let through.
"""

from __future__ import annotations

from typing import Final

from kavka.client.tls.der import OBJECT_IDENTIFIER, SEQUENCE, SET, element, elements

_VERSION: Final = 0xA0
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: all read as UTF-8, as Java does."""
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANK: Final = " \r"
_BEFORE_SUBJECT: Final = 4
"""Serial number, algorithm, issuer, validity; before them the version, mostly."""


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate (DER). Raises ValueError where it is none."""
    tag, certificate_content, _ = element(certificate)
    _expect(tag, SEQUENCE)
    tag, content, _ = element(certificate_content)
    _expect(tag, SEQUENCE)
    fields = elements(content)
    tag, _ = next(fields, (0, b""))
    for _ in range(_BEFORE_SUBJECT if tag == _VERSION else _BEFORE_SUBJECT - 1):
        next(fields, None)
    tag, subject = next(fields, (0, b""))
    _expect(tag, SEQUENCE)
    return _name(subject)


def _name(content: bytes) -> str:
    names = []
    for tag, relative in elements(content):
        _expect(tag, SET)
        names.append("+".join([_attribute(tag, pair) for tag, pair in elements(relative)]))
    return ",".join(reversed(names))


def _attribute(tag: int, content: bytes) -> str:
    _expect(tag, SEQUENCE)
    tag, identifier, value = element(content)
    _expect(tag, OBJECT_IDENTIFIER)
    tag, text, _ = element(value)
    dotted = _dotted(identifier)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{value.hex()}"
    return f"{keyword}={_escaped(text.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(["\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text])
    begin = len(escaped) - len(escaped.lstrip(_BLANK))
    end = len(escaped.rstrip(_BLANK))
    if begin >= end:
        return "".join(["\\" + each for each in escaped])
    return "".join(["\\" + each if index < begin or index >= end else each for index, each in enumerate(escaped)])


def _dotted(identifier: bytes) -> str:
    """An object identifier's numbers. Raises ValueError."""
    numbers: list[int] = []
    number = 0
    for byte in identifier:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or identifier[-1] & 0x80:
        raise ValueError("an object identifier is cut short")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _expect(tag: int, expected: int) -> None:
    if tag != expected:
        raise ValueError("this is no certificate")
