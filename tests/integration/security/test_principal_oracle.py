"""Random subjects and rules: Java's names of certificates, and what Kafka makes of them, are ours."""

from __future__ import annotations

import base64
import random
import subprocess

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kavka.broker.security.tls.distinguished_name import subject_name
from kavka.broker.security.tls.principal import PrincipalRules, UnmappedError
from tests.support.certificates import Authority
from tests.support.java_programs import java_command

SUBJECTS = 250
ATTRIBUTES = [
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
    NameOID.EMAIL_ADDRESS,
    NameOID.SERIAL_NUMBER,
    NameOID.TITLE,
    NameOID.GIVEN_NAME,
    NameOID.DN_QUALIFIER,
    ObjectIdentifier("1.3.6.1.4.1.55555.7.128.16384"),
]
KINDS = [None, None, None, _ASN1Type.UTF8String, _ASN1Type.BMPString, _ASN1Type.T61String, _ASN1Type.IA5String]
CHARACTERS = 'abcXYZ019 ,+"\\<>;=#/@*.-\r\tüß猫\U0001f40d'
RULES = [
    "DEFAULT",
    "RULE:^CN=([^,]*).*$/$1/, DEFAULT",
    "RULE:^CN=([^,]*),O=(.*)$/$2:$1/L,RULE:.*CN=([^,+]+).*/$1/U,DEFAULT",
    "RULE:^UID=(.*?),.*$/$1@$3/",
    "RULE:(.*)=(.*)/$2-$12-\\\\$1/U",
    "RULE:[A-Z]+=.*/x/",
    "RULE:.*/y/",
]


def random_subject(dice: random.Random) -> x509.Name:
    steps = []
    for _ in range(dice.randrange(1, 6)):
        attributes = {}
        for _ in range(dice.choice([1, 1, 1, 2])):
            text = "".join(dice.choices(CHARACTERS, k=dice.randrange(1, 12)))
            kind = dice.choice(KINDS)
            if kind in (_ASN1Type.T61String, _ASN1Type.IA5String):
                text = text.encode("ascii", "ignore").decode() or "x"
            oid = dice.choice(ATTRIBUTES)
            attributes[oid] = x509.NameAttribute(oid, text, kind)
        steps.append(x509.RelativeDistinguishedName(list(attributes.values())))
    return x509.Name(steps)


def ours(rules: str, certificate: bytes) -> tuple[str, str | None]:
    try:
        mapped = PrincipalRules(rules).principal(certificate).removeprefix("User:")
    except UnmappedError:
        return subject_name(certificate), None
    return subject_name(certificate), mapped


@pytest.mark.java
def test_subjects_and_principals_are_those_of_java_and_kafka() -> None:
    dice = random.Random(13)
    authority = Authority()
    asked: list[tuple[str, bytes]] = []
    while len(asked) < SUBJECTS:
        try:
            certificate = authority.issue(random_subject(dice), hosts=()).der
        except ValueError:
            # The library makes no such value.
            continue
        asked.append((dice.choice(RULES), certificate))
    lines = "".join(f"{_encoded(rules.encode())} {_encoded(certificate)}\n" for rules, certificate in asked)

    done = subprocess.run(
        java_command("PrincipalOracle"), input=lines, capture_output=True, text=True, timeout=180, check=True
    )

    expected = []
    for line in done.stdout.splitlines():
        name, mapped = line.split(" ")
        expected.append((_decoded(name), None if mapped == "-" else _decoded(mapped)))
    assert [ours(*each) for each in asked] == expected


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
