"""Who a certificate makes its client: the subject's text as Java writes it, and rules over it."""

from __future__ import annotations

import random

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kavka.broker.security.tls.distinguished_name import subject_name
from kavka.broker.security.tls.principal import PrincipalRules, UnmappedError
from kavka.config.errors import ConfigError
from tests.support.certificates import Authority, subject

AUTHORITY = Authority()
NAME = 'CN=kafka-client,OU=Dept. of \\"Cats\\",O=Kavka \\+ Sons\\, Ltd'


def named(*parts: tuple[ObjectIdentifier, str]) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    return AUTHORITY.issue(name, hosts=()).der


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(NameOID.COMMON_NAME, "a")], "CN=a"),
        ([(NameOID.COUNTRY_NAME, "CZ"), (NameOID.COMMON_NAME, "a")], "CN=a,C=CZ"),
        ([(NameOID.COMMON_NAME, ' a,b+c"d\\e<f>g;h=i#j ')], 'CN=\\ a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j\\ '),
        ([(NameOID.COMMON_NAME, "Jiří 猫")], "CN=Jiří 猫"),
        ([(NameOID.COMMON_NAME, "  ")], "CN=\\ \\ "),
        ([(NameOID.USER_ID, "u"), (NameOID.DOMAIN_COMPONENT, "x")], "DC=x,UID=u"),
        ([(NameOID.STREET_ADDRESS, "s"), (NameOID.STATE_OR_PROVINCE_NAME, "p")], "ST=p,STREET=s"),
        ([(NameOID.LOCALITY_NAME, "l"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "u")], "OU=u,L=l"),
        ([(NameOID.EMAIL_ADDRESS, "a@b")], "1.2.840.113549.1.9.1=#1603614062"),
        ([(NameOID.SERIAL_NUMBER, "7"), (NameOID.COMMON_NAME, "a")], "CN=a,2.5.4.5=#130137"),
        ([(ObjectIdentifier("2.999.70000.1"), "x")], "2.999.70000.1=#0c0178"),
    ],
)
def test_a_subject_is_written_as_java_does(parts: list[tuple[ObjectIdentifier, str]], expected: str) -> None:
    assert subject_name(named(*parts)) == expected


def test_attributes_of_one_step_are_joined_by_plus() -> None:
    step = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "1")]
    )
    organisation = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o")])
    issued = AUTHORITY.issue(x509.Name([organisation, step]), hosts=())
    assert subject_name(issued.der) in ("CN=a+UID=1,O=o", "UID=1+CN=a,O=o")


def test_older_kinds_of_text_are_read_as_java_reads_them() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ab", _ASN1Type.BMPString)])
    assert subject_name(AUTHORITY.issue(name, hosts=()).der) == "CN=\\00a\\00b"


def test_damaged_certificates_are_refused_and_nothing_else_happens() -> None:
    der = named((NameOID.ORGANIZATION_NAME, "Kavka"), (NameOID.COMMON_NAME, "a"))
    chance = random.Random(7)
    for size in range(len(der)):
        with pytest.raises(ValueError, match=r"certificate|cut short"):
            subject_name(der[:size])
    for _ in range(3000):
        damaged = bytearray(der)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            text = subject_name(bytes(damaged))
        except ValueError:
            continue
        assert isinstance(text, str)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=a,OU=ServiceUsers,O=b", "a"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, DEFAULT", "CN=a,OU=Else", "CN=a,OU=Else"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/U", "CN=a,OU=b,O=c", "A@B"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L,DEFAULT", "CN=A,OU=B", "a@b"),
        ("RULE:^cn=(.*?)$/$1/, RULE:^CN=([^,]*).*/$1/", "CN=a,O=b", "a"),
        ("RULE:^CN=(?<who>[^,]*).*$/${who}/", "CN=a,O=b", "a"),
        ("RULE:^CN=([^,]*).*$/$1-$2-$12/", "CN=a,O=b", "a-$2-a2"),
        ("RULE:^CN=([^,]*).*$/\\$1/", "CN=a,O=b", "$1"),
        ("RULE:^CN=.*$/fixed\\/x/", "CN=a,O=b", "fixed/x"),
        ("RULE:.*/x/", "CN=a", "xx"),
        ("", "CN=a", None),
        ("RULE:^CN=(.*)$/$1/", "O=b,CN=a", None),
        (r"RULE:^CN=(\w+)$/$1/", "CN=alice", "alice"),
        (r"RULE:^CN=(\w+)$/$1/", "CN=älice", None),
        (r"RULE:^CN=user(\d+)$/$1/", "CN=user\u0661", None),
        (r"RULE:^CN=(\S+)$/$1/", "CN=a\u2003b", "a\u2003b"),
        (r"RULE:^CN=([a&b\[]+)$/$1/", "CN=a&[", "a&["),
    ],
)
def test_the_first_rule_that_matches_counts(rules: str, name: str, expected: str | None) -> None:
    mapped = PrincipalRules(rules)
    if expected is None:
        with pytest.raises(UnmappedError, match="No rules apply to"):
            mapped.principal_of(name)
    else:
        assert mapped.principal_of(name) == f"User:{expected}"


@pytest.mark.parametrize(
    "rules",
    [
        *("default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?)/$1", "RULE:^CN=(.*?)$/$1/LU", "RULE:(/x/", "RULE:\\p{L}/x/"),
        *("RULE:CN=[a-z&&[^b]]+/x/", "RULE:CN=[a-z&&b]/x/", "RULE:CN=[a[b]]/x/"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)


@pytest.mark.parametrize("pattern", ["(?u)CN=(.*)", "(?L)CN=(.*)", "a{99999999999999}", "(" * 3000 + ")" * 3000])
def test_patterns_beyond_pythons_engine_are_refused_as_others_are(pattern: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        PrincipalRules(f"RULE:{pattern}/$1/")


def test_a_certificate_becomes_a_principal() -> None:
    name = subject("kafka-client", organisation="Kavka + Sons, Ltd", unit='Dept. of "Cats"')
    certificate = AUTHORITY.issue(name, hosts=()).der
    assert PrincipalRules("DEFAULT").principal(certificate) == f"User:{NAME}"
    assert PrincipalRules("RULE:^CN=([^,]+).*$/$1/").principal(certificate) == "User:kafka-client"
