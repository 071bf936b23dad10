"""A listener's SASL comes from its settings; what cannot be served as it is set stops the start by its name."""

import pytest

from kavka.config import BrokerConfig, ConfigError
from kavka.config.promises import check_promises
from kavka.config.sasl_settings import MECHANISMS, UNSECURED_VALIDATOR, VALIDATORS, ListenerSasl, sasl_of

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
OWN = "listener.name.outside."
URL = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER = "sasl.server.callback.handler.class"


def config(**settings: str) -> BrokerConfig:
    """`settings`: those of the listener, `__` for a dot and `_` for `-`."""
    given = {OWN + name.replace("__", ".").replace("_", "-"): text for name, text in settings.items()}
    return BrokerConfig(
        {
            "listeners": "INSIDE://:1,OUTSIDE://:2",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            **given,
        }
    )


def sasl(**settings: str) -> ListenerSasl:
    return sasl_of(config(**settings), "OUTSIDE")


def test_a_listener_has_the_mechanisms_that_it_enables_in_their_order() -> None:
    found = sasl(sasl__enabled__mechanisms="SCRAM-SHA-512,PLAIN,SCRAM-SHA-512", plain__sasl__jaas__config=PLAIN)

    assert [each.name for each in found.mechanisms] == ["SCRAM-SHA-512", "PLAIN"]
    assert found.mechanisms[0].jaas is None
    entry = found.mechanisms[1].jaas
    assert entry is not None
    assert dict(entry.options) == {"user_alice": "secret"}
    assert (found.max_receive_bytes, found.failure_delay_ms) == (524_288, 100)


def test_a_mechanisms_setting_hides_the_listeners_and_that_the_brokers() -> None:
    given = {
        "listeners": "OUTSIDE://:2",
        "listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms": "1000",
        "sasl.oauthbearer.sub.claim.name": "user",
        f"{OWN}connections.max.reauth.ms": "2000",
        f"{OWN}scram-sha-256.connections.max.reauth.ms": "3000",
        f"{OWN}oauthbearer.{URL}": "https://issuer/keys",
        f"{OWN}sasl.oauthbearer.expected.audience": "a,b",
    }
    first, second, third = sasl_of(BrokerConfig(given), "OUTSIDE").mechanisms

    assert (first.max_reauth_ms, second.max_reauth_ms) == (3000, 2000)
    assert third.tokens is not None
    assert third.tokens.jwks_url == "https://issuer/keys"
    assert (third.tokens.audiences, third.tokens.subject_claim) == (("a", "b"), "user")


def test_whom_to_trust_where_keys_are_fetched_is_the_login_modules_to_say() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    given = {
        "sasl__enabled__mechanisms": "OAUTHBEARER",
        "sasl__oauthbearer__jwks__endpoint__url": "https://issuer/keys",
        "oauthbearer__sasl__jaas__config": f'{module} required ssl.truststore.type="PEM" ssl.truststore.location="ca";',
    }
    (found,) = sasl(**given).mechanisms

    assert found.tokens is not None
    assert {name: text.value for name, text in found.tokens.web_options} == {
        "ssl.truststore.location": "ca",
        "ssl.truststore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "listener.name.outside.gssapi.sasl.jaas.config"),
        ({"sasl__enabled__mechanisms": ""}, "needs one of"),
        ({"sasl__enabled__mechanisms": "PLAIN,CRAM-MD5"}, "must be some of"),
        ({"sasl__enabled__mechanisms": "plain"}, "must be some of"),
        ({"sasl__enabled__mechanisms": "PLAIN"}, "plain.sasl.jaas.config"),
        ({"sasl__enabled__mechanisms": "PLAIN", "sasl__jaas__config": PLAIN}, "plain.sasl.jaas.config"),
        ({"sasl__enabled__mechanisms": "PLAIN", "plain__sasl__jaas__config": PLAIN[:-1]}, "semi-colon"),
        ({"sasl__enabled__mechanisms": "PLAIN", "plain__sasl__jaas__config": PLAIN * 2}, "1 module"),
        (
            {
                "sasl__enabled__mechanisms": "PLAIN",
                "plain__sasl__jaas__config": 'other.Module required user_a="secret";',
            },
            "PlainLoginModule",
        ),
        (
            {"sasl__enabled__mechanisms": "SCRAM-SHA-256", "sasl__server__callback__handler__class": "com.example.Own"},
            "Java class",
        ),
        (
            {"sasl__enabled__mechanisms": "OAUTHBEARER", "oauthbearer__" + HANDLER.replace(".", "__"): "x.Y"},
            "Java class",
        ),
        (
            {"sasl__enabled__mechanisms": "OAUTHBEARER", "oauthbearer__" + HANDLER.replace(".", "__"): VALIDATORS[0]},
            URL,
        ),
        (
            {
                "sasl__enabled__mechanisms": "OAUTHBEARER",
                "oauthbearer__" + HANDLER.replace(".", "__"): UNSECURED_VALIDATOR,
                URL.replace(".", "__"): "https://issuer/keys",
            },
            "unsigned",
        ),
        ({"sasl__enabled__mechanisms": "OAUTHBEARER", URL.replace(".", "__"): "ftp://issuer/keys"}, "http or file"),
        *(
            ({"sasl__enabled__mechanisms": "OAUTHBEARER", URL.replace(".", "__"): url}, "Must be a URL")
            for url in (
                "https://secret@[x/keys",
                "http://secret@host:99999/",
                "http://host:secret/",
                "https://",
                "file:",
            )
        ),
        (
            {"sasl__enabled__mechanisms": "OAUTHBEARER", "sasl__oauthbearer__jwks__endpoint__refresh__ms": "0"},
            "refresh.ms",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_promises(config(**settings))
    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


def test_settings_of_sasl_promise_nothing_without_such_a_listener() -> None:
    check_promises(BrokerConfig({"sasl.enabled.mechanisms": "CRAM-MD5"}))


def test_every_mechanism_is_known() -> None:
    assert MECHANISMS == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
