"""Texts of sasl.jaas.config are read as Kafka's JaasConfig reads them, and nothing of them is shown."""

import pytest

from kavka.config.jaas import only_entry, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
READ = [
    ('M required username="alice" password="a b";', {"username": "alice", "password": "a b"}),
    ("M REQUIRED a='single \" quotes' b=word-with_$.2;", {"a": 'single " quotes', "b": "word-with_$.2"}),
    (r'M optional a="\"\\\t\101\1012\777";', {"a": '"\\\tAA2?7'}),
    ('M sufficient // a comment\n a=b /* c="d" */ e="/*f*/";', {"a": "b", "e": "/*f*/"}),
    ("M requisite a=b / the rest is one, too\n;", {"a": "b"}),
    ("M required /\na=b\n;", {}),
    ('M required "a b"="c";', {"a b": "c"}),
    ('M required a="the line ends it\n;', {"a": "the line ends it"}),
    ("M required;", {}),
    ("M required a=äöü;", {"a": "äöü"}),
]
REFUSED = [
    ("", "Login module not specified"),
    ("M", "control flag not specified"),
    ("M ;", "control flag is not available"),
    ("M surely;", "Invalid login module control flag"),
    ("M required a=b", "not terminated by semi-colon"),
    ("M required a b=c;", "Value not specified"),
    ("M required password=123;", "Value not specified"),
    ("M required a=;", "Value not specified"),
    ("; required;", "Login module not specified"),
]


@pytest.mark.parametrize(("text", "options"), READ)
def test_options_are_read_as_java_reads_them(text: str, options: dict[str, str]) -> None:
    entry = only_entry(text)
    assert (entry.login_module, dict(entry.options)) == ("M", options)


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_a_text_that_kafka_refuses_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_jaas(text)


def test_a_text_may_have_several_entries_and_a_client_one() -> None:
    text = "A required a=b; B required c=d;"
    assert [entry.login_module for entry in parse_jaas(text)] == ["A", "B"]
    with pytest.raises(ValueError, match="2 login modules, should be 1"):
        only_entry(text)


@pytest.mark.parametrize("text", ["M required password=secret", "M required password=secret word;", "M secret;"])
def test_no_error_shows_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="JAAS") as caught:
        only_entry(text)
    assert "secret" not in str(caught.value)


def test_an_entry_shows_names_alone() -> None:
    assert "secret" not in repr(only_entry("M required password=secret;"))


def test_a_vendors_package_before_kafkas_is_the_same_class() -> None:
    assert only_entry(f"kafkashaded.{PLAIN} required;").is_of(PLAIN)
    assert not only_entry(f"not{PLAIN} required;").is_of(PLAIN)
