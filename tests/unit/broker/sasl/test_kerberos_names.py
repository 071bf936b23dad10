"""Principals become users' names by Kafka's rules."""

import pytest

from kavka.broker.security.sasl.kerberos_names import LocalNames, NoNameError

REALM = "EXAMPLE.COM"


def name(principal: str, *rules: str) -> str:
    return LocalNames(rules or ("DEFAULT",), REALM).name_of(principal)


@pytest.mark.parametrize(
    ("principal", "rules", "expected"),
    [
        ("alice@EXAMPLE.COM", (), "alice"),
        ("kafka/host.example.com@EXAMPLE.COM", (), "kafka"),
        ("alice", (), "alice"),
        ("App.service-name@REALM.COM", ("RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g", "DEFAULT"), "service-name"),
        ("App.service-name@EXAMPLE.COM", ("RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g/L",), "service-name"),
        ("Alice@REALM.COM", ("RULE:[1:$1@$0](.*@REALM\\.COM)s/@.*//L",), "alice"),
        ("ALICE@REALM.COM", ("RULE:[1:$1]/L",), "alice"),
        ("user/admin@REALM.COM", ("RULE:[2:$1-$2]",), "user-admin"),
        ("user/admin@REALM.COM", ("RULE:[1:$1]", "RULE:[2:$2;$1](^admin;.*$)s/^admin;(.*)$/$1.adm/"), "user.adm"),
        ("aXbXc@REALM.COM", ("RULE:[1:$1](.*)s/X/-/",), "a-bXc"),
        ("aXbXc@REALM.COM", ("RULE:[1:$1](.*)s/X/-/g",), "a-b-c"),
    ],
)
def test_the_first_rule_that_applies_names_the_user(principal: str, rules: tuple[str, ...], expected: str) -> None:
    assert name(principal, *rules) == expected


@pytest.mark.parametrize(
    ("principal", "rules"),
    [
        ("alice@OTHER.COM", ()),
        ("alice/a/b@EXAMPLE.COM", ()),
        ("a@b@EXAMPLE.COM", ()),
        ("", ()),
        ("@EXAMPLE.COM", ()),
        ("alice@REALM.COM", ("RULE:[2:$1]",)),
        ("alice@REALM.COM", ("RULE:[1:$1@$0]",)),
        ("alice@REALM.COM", ("RULE:[1:$3]",)),
        ("alice@REALM.COM", ("RULE:[1:$1](bob)",)),
        ("alice@REALM.COM", ("RULE:[1:$1](.*)s/alice//",)),
        ("älice@REALM.COM", (r"RULE:[1:$1](\w+)",)),
    ],
)
def test_a_principal_without_a_name_is_refused(principal: str, rules: tuple[str, ...]) -> None:
    with pytest.raises(NoNameError):
        name(principal, *rules)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "RULE:",
        "RULE:[1]",
        "RULE:[1:$1](",
        "RULE:[1:$1](.*)s/a/b",
        "RULE:[1:$1]([)",
        "RULE:[1:$1](.*)s/a/$1/",
        "RULE:[0:x]",
        "DEFAULTx",
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        LocalNames((rule,), REALM)
