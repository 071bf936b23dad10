"""Dynamic settings as they are stored: passwords encrypted in Kafka's text, references to config providers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.broker.settings.dynamic_config import DynamicConfig, PendingChange
from kavka.broker.settings.password_encoder import MOST_ITERATIONS, PasswordEncoder, encoder_of
from kavka.broker.settings.stored_settings import StoredSettings
from kavka.config import BrokerConfig, ConfigError
from kavka.config.describe import describe_broker
from kavka.config.errors import SettingRefusedError
from kavka.config.values import Password
from tests.support.examples import examples

NAME = "listener.name.secure.ssl.keystore.password"
FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
PASSWORD = "keystore-pass-ö"


def static(**settings: str) -> BrokerConfig:
    given = {name.replace("__", "."): text for name, text in settings.items()}
    return BrokerConfig({"password.encoder.secret": "the secret", **given})


def test_a_password_is_stored_encrypted_and_read_again() -> None:
    stored_settings = StoredSettings(static())

    stored = stored_settings.protect({NAME: PASSWORD, "num.io.threads": "3"}, {})

    assert PASSWORD not in stored[NAME]
    assert stored["num.io.threads"] == "3"
    assert stored_settings.read(stored) == ({NAME: PASSWORD, "num.io.threads": "3"}, [])


def test_a_password_that_stays_is_left_as_it_is_stored() -> None:
    stored_settings = StoredSettings(static())
    stored = stored_settings.protect({NAME: PASSWORD}, {})

    assert stored_settings.protect({**stored, "num.io.threads": "3"}, stored)[NAME] == stored[NAME]


def test_without_the_secret_no_password_is_stored_or_read() -> None:
    without = StoredSettings(BrokerConfig())
    stored = StoredSettings(static()).protect({NAME: PASSWORD}, {})

    with pytest.raises(ConfigError, match=r"password\.encoder\.secret"):
        without.protect({NAME: PASSWORD}, {})
    texts, unused = without.read(stored)
    assert (texts, [each.name for each in unused]) == ({}, [NAME])


def test_the_old_secrets_passwords_are_encrypted_anew_and_others_left_alone() -> None:
    old = StoredSettings(static())
    new = StoredSettings(static(password__encoder__secret="another", password__encoder__old__secret="the secret"))
    stored = {**old.protect({NAME: PASSWORD}, {}), "num.io.threads": "3"}
    stored["listener.name.x.ssl.key.password"] = "no password at all"

    renewed = new.renewed(stored)

    assert renewed is not None
    assert new.read(renewed)[0] == {NAME: PASSWORD, "num.io.threads": "3"}
    assert renewed["listener.name.x.ssl.key.password"] == "no password at all"
    assert new.renewed(renewed) is None
    assert old.renewed(stored) is None


@pytest.mark.parametrize("cipher", ["AES/CBC/PKCS5Padding", "AES/GCM/NoPadding", "AES/CTR/NoPadding"])
@pytest.mark.parametrize("length", ["128", "256"])
def test_what_a_cipher_encoded_is_decoded_whatever_the_present_one_is(cipher: str, length: str) -> None:
    encoder = encoder_of(static(password__encoder__cipher__algorithm=cipher, password__encoder__key__length=length))
    other = encoder_of(static(password__encoder__iterations="2048"))
    assert encoder is not None
    assert other is not None

    for password in ("", "x" * 16, PASSWORD, "\N{GRINNING FACE}"):
        assert other.decode(encoder.encode(password)) == password


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("password.encoder.cipher.algorithm", "DES/ECB/PKCS5Padding"),
        ("password.encoder.cipher.algorithm", "AES"),
        ("password.encoder.keyfactory.algorithm", "PBKDF1"),
        ("password.encoder.key.length", "64"),
        ("password.encoder.iterations", str(MOST_ITERATIONS + 1)),
    ],
)
def test_an_encoder_that_cannot_be_had_stops_the_start_by_its_setting(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        DynamicConfig(BrokerConfig({"password.encoder.secret": "s", name: text}), 1)


def an_encoder(secret: str = "the secret") -> PasswordEncoder:
    return PasswordEncoder(Password(secret), "AES/CBC/PKCS5Padding", None, 128, 1024)


def test_a_wrong_secret_and_a_changed_text_are_told_without_the_text() -> None:
    encoded = an_encoder().encode(PASSWORD)
    wrong = [
        encoded.replace("iterations:1024", f"iterations:{10**9}"),
        encoded.replace("keyLength:128", "keyLength:4096000"),
        encoded.replace("passwordLength:15", "passwordLength:14"),
        encoded.replace("AES/CBC", "AES/ECB"),
        encoded.replace("HmacSHA512", "HmacMD5"),
        encoded.replace("initializationVector:", "initializationVector:AA"),
        encoded.partition(",")[2],
    ]

    for text in wrong:
        with pytest.raises(ConfigError) as refused:
            an_encoder().decode(text)
        assert text[:40] not in str(refused.value)
    with pytest.raises(ConfigError):
        an_encoder("another").decode(encoded)


@examples(100)
@given(st.text(max_size=100))
def test_any_text_is_a_password_or_an_error(text: str) -> None:
    for each in (text, "keyLength:128,iterations:1024,cipherAlgorithm:AES/CBC/PKCS5Padding," + text):
        with pytest.raises(ConfigError):
            an_encoder().decode(each)


def test_a_stored_reference_is_looked_up_and_shown_as_it_is(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(f"pass={PASSWORD}\nlocation=/run/{PASSWORD}\n")
    location = "listener.name.secure.ssl.keystore.location"
    config = DynamicConfig(static(), 1)
    stored = {
        **FILE_PROVIDER,
        **config.stored_settings.protect({NAME: f"${{file:{secrets}:pass}}"}, {}),
        location: f"${{file:{secrets}:location}}",
    }

    config.broker_started({}, stored)

    assert config.current.listener_value("secure", "ssl.keystore.password").value == PASSWORD
    assert config.current.listener_value("secure", "ssl.keystore.location") == f"/run/{PASSWORD}"
    shown = {entry.name: entry.value for entry in describe_broker(config.current)}
    assert PASSWORD not in repr(shown)
    assert PASSWORD not in repr(describe_broker(config.current))


def test_a_change_with_a_reference_to_nothing_is_refused_and_a_stored_one_left_out(tmp_path: Path) -> None:
    config = DynamicConfig(static(), 1)
    stored = {**FILE_PROVIDER, "log.retention.check.interval.ms": "5", "num.io.threads": f"${{file:{tmp_path}/x:y}}"}

    with pytest.raises(ConfigError, match=r"num\.io\.threads"):
        config.check_broker_change(1, stored)
    before = config.current.num_io_threads
    config.broker_started({}, stored)

    assert config.current.num_io_threads == before


def test_a_limit_whose_reference_leads_to_nothing_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    config = DynamicConfig(static(), 1)

    with pytest.raises(ConfigError, match=r"kavka storage settings --delete max\.connections "):
        config.broker_started({}, {**FILE_PROVIDER, "max.connections": f"${{file:{tmp_path}/x:y}}"})


JAAS = "listener.name.ext.plain.sasl.jaas.config"


@pytest.mark.parametrize("stored", [{JAAS: "undecodable"}, {**FILE_PROVIDER, JAAS: None}])
def test_users_that_cannot_be_read_keep_the_broker_from_starting_with_those_of_before(
    tmp_path: Path, stored: dict[str, str | None]
) -> None:
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_gone="secret";'
    listeners = {"listeners": "EXT://:9092", "listener.security.protocol.map": "EXT:SASL_SSL"}
    config = DynamicConfig(static(**listeners, **{JAAS: users}), 1)
    reference = config.stored_settings.protect({JAAS: f"${{file:{tmp_path}/x:y}}"}, {})[JAAS]

    with pytest.raises(ConfigError, match=f"kavka storage settings --delete {JAAS} "):
        config.broker_started({}, {name: text or reference for name, text in stored.items()})


VAULT = {"config.providers": "vault", "config.providers.vault.class": "com.example.Vault"}


def test_a_reference_to_a_provider_that_cannot_be_had_is_nobodys_password() -> None:
    """The stored text was the password then: who knew where it is kept could log in by that."""
    listeners = {"listeners": "EXT://:9092", "listener.security.protocol.map": "EXT:SASL_SSL"}
    config = DynamicConfig(static(**listeners), 1)
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="${vault:/x:alice}";'
    stored = {**VAULT, **config.stored_settings.protect({JAAS: users}, {})}

    texts, unused = config.stored_settings.read(stored)

    assert JAAS not in texts
    assert {name for name, _ in unused} == {"config.providers.vault.class", JAAS}
    with pytest.raises(ConfigError, match=f"{JAAS} was changed .* refers to the config provider vault"):
        config.broker_started({}, stored)


def test_a_provider_that_is_not_defined_takes_no_others_along(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a=5")
    config = DynamicConfig(static(), 1)
    stored = {**FILE_PROVIDER, "num.io.threads": f"${{file:{tmp_path}/file:a}}"}
    config.broker_started({}, stored)

    with pytest.raises(ConfigError, match=r"config\.providers\.vault\.class"):
        config.check_broker_change(1, {**stored, "config.providers": "file,vault"})


def test_an_error_of_a_change_does_not_tell_what_a_provider_has(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a=PLAINTEXT://somewhere:hunter2\n")
    config = DynamicConfig(static(), 1)

    for name in ("listeners", "advertised.listeners", "num.io.threads"):
        with pytest.raises(ConfigError) as refused:
            config.check_broker_change(1, {**FILE_PROVIDER, name: f"${{file:{tmp_path}/file:a}}"})
        assert "hunter2" not in str(refused.value)


SECRET_FILE = "bravo77\nTopSecretLine:xx, 0000000077 zulu:1,\n"


@pytest.mark.parametrize(
    "name",
    [
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "max.connections.per.ip.overrides",
        "num.io.threads",
        "listener.name.plaintext.ssl.client.auth",
        "principal.builder.class",
    ],
)
@pytest.mark.parametrize("content", [SECRET_FILE, "bravo77\n", " 0000000077", "x,bravo77:y"])
def test_no_piece_of_a_file_is_told_to_who_may_change_settings_and_not_read_it(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / "shadow").write_text(content)
    provider = {
        "config.providers": "d",
        "config.providers.d.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    }
    config = DynamicConfig(static(), 1)

    with pytest.raises(ConfigError) as refused:
        config.check_broker_change(1, {**provider, name: f"${{d:{tmp_path}:shadow}}"})

    told = str(refused.value).replace(str(tmp_path), "")
    assert name in told
    assert not any(piece in told.lower() for piece in ("bravo", "secretline", "77", "zulu", "xx "))


class Unopened:
    """Parts that cannot follow, and say what of."""

    def prepare(self, config: BrokerConfig) -> None:
        location = config.listener_value("secure", "ssl.keystore.location")
        raise SettingRefusedError("ssl.keystore.location", 22, f"Invalid value {location[:20]}: there is no such file")

    def keep_only(self, configs: Sequence[BrokerConfig]) -> None:
        assert len(configs) == 1

    def changed(self, *_: object) -> None:
        raise AssertionError("nothing was prepared")


def test_what_a_part_says_that_cannot_follow_has_nothing_of_a_provider_either(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(f"a={'bravo' * 10}\n")
    config = DynamicConfig(static(), 1)
    config.follow(Unopened())
    location = "listener.name.secure.ssl.keystore.location"

    for text, shown in ((f"${{file:{tmp_path}/file:a}}", "[hidden]"), ("/the/store", "/the/store: there is no such")):
        changed = config.check_broker_change(1, {**FILE_PROVIDER, location: text})
        with pytest.raises(ConfigError) as refused:
            PendingChange(config).prepare(changed)
        assert "bravo" not in str(refused.value)
        assert shown in str(refused.value) or shown == "[hidden]"


def test_an_error_that_has_nothing_of_a_provider_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a=3\n")

    with pytest.raises(ConfigError, match="listeners: must be of the form NAME://host:port"):
        DynamicConfig(static(), 1).check_broker_change(
            1, {**FILE_PROVIDER, "num.io.threads": f"${{file:{tmp_path}/file:a}}", "listeners": "nonsense"}
        )


def test_a_provider_of_the_static_settings_is_not_widened_from_afar(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (tmp_path / "file").write_text("a=3\n")
    own = {**FILE_PROVIDER, "config.providers.file.param.allowed.paths": str(allowed)}
    config = DynamicConfig(BrokerConfig(own), 1)

    with pytest.raises(ConfigError, match="not allowed"):
        config.check_broker_change(
            1, {"config.providers.file.param.allowed.paths": "", "num.io.threads": f"${{file:{tmp_path}/file:a}}"}
        )
