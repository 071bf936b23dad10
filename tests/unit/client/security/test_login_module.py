"""From settings to who the client is: what Kafka's login modules take, and what they lack."""

import pytest

from kavka.client.security.login_module import BEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE, password_mechanism
from kavka.client.security.opening import open_security
from kavka.config.clients.loading import secure_settings
from kavka.config.clients.secure import SecureSettings
from kavka.config.errors import ConfigError

SECRET = "wonderland-4711"


def settings(mechanism: str, jaas: str | None, **others: str) -> SecureSettings:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return secure_settings({**given, **others})


@pytest.mark.parametrize("module", [PLAIN_MODULE, SCRAM_MODULE, f"kafkashaded.{PLAIN_MODULE}"])
def test_name_and_password_may_come_by_either_module(module: str) -> None:
    made = password_mechanism(settings("PLAIN", f'{module} required username="alice" password="{SECRET}";'))
    assert made.begin().first() == f"\0alice\0{SECRET}".encode()


def test_a_delegation_token_says_that_it_is_one() -> None:
    text = f'{SCRAM_MODULE} required username="id" password="{SECRET}" tokenauth="true";'
    assert b",tokenauth=true" in password_mechanism(settings("SCRAM-SHA-256", text)).begin().first()
    plain = text.replace("true", "false")
    assert b"tokenauth" not in password_mechanism(settings("SCRAM-SHA-256", plain)).begin().first()


REFUSED = [
    ("PLAIN", None, "needs a login module"),
    ("PLAIN", f"{PLAIN_MODULE} required;", "needs the options username and password"),
    ("PLAIN", f'{PLAIN_MODULE} required username="alice";', "needs the options username and password"),
    ("PLAIN", f'{BEARER_MODULE} required username="a" password="{SECRET}";', "must be .*PlainLoginModule"),
    ("PLAIN", f'{PLAIN_MODULE} required username="a\\0" password="{SECRET}";', "characters of the value 0"),
    ("PLAIN", f'{PLAIN_MODULE} required username="a" password="{SECRET}"', "not terminated by semi-colon"),
    ("SCRAM-SHA-256", f'{SCRAM_MODULE} required username="älice" password="{SECRET}";', "names of ASCII"),
    ("OAUTHBEARER", f'{PLAIN_MODULE} required username="a" password="{SECRET}";', "must be .*OAuthBearerLoginModule"),
]


@pytest.mark.parametrize(("mechanism", "jaas", "expected"), REFUSED)
def test_what_cannot_log_in_is_refused_without_showing_it(mechanism: str, jaas: str | None, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        open_security(settings(mechanism, jaas), "test")
    assert SECRET not in str(caught.value)


BEARER = f"{BEARER_MODULE} required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@pytest.mark.parametrize(
    ("options", "others", "expected"),
    [
        ("", {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/t"}, "clientId and clientSecret"),
        ("", {"sasl.oauthbearer.token.endpoint.url": "ftp://127.0.0.1/t"}, "https, http or file"),
        ("", {"sasl.oauthbearer.token.endpoint.url": "http://[x/t"}, "Must be a URL"),
        ("", {"sasl.oauthbearer.token.endpoint.url": "http://host:99999/t"}, "Must be a URL"),
        ("", {"sasl.oauthbearer.token.endpoint.url": "http:///t"}, "Must be a URL with a host"),
        ("", {"sasl.login.callback.handler.class": HANDLER}, "https, http or file"),
        ("", {"sasl.login.callback.handler.class": "com.example.Handler"}, "or a callable"),
        ('unsecuredLoginExtension_auth="x"', {}, "no name for an extension"),
    ],
)
def test_tokens_that_cannot_come_are_refused(options: str, others: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        open_security(settings("OAUTHBEARER", f"{BEARER} {options};", **others), "test")
