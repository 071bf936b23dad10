"""Settings whose values config providers have (KIP-297, KIP-421, KIP-887)."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.config import BrokerConfig, ConfigError
from kavka.config.describe import describe_broker
from kavka.config.providers import Providers
from kavka.config.sources import load_config
from tests.support.examples import examples

CLASSES = "org.apache.kafka.common.config.provider."
SECRET = "hunter2-and-more"


def definitions(**params: str) -> dict[str, str]:
    """The three providers, with parameters such as file_allowed__paths."""
    defined = {
        "config.providers": "file,dir, env",
        "config.providers.file.class": f"{CLASSES}FileConfigProvider",
        "config.providers.dir.class": f"{CLASSES}DirectoryConfigProvider",
        "config.providers.env.class": f"{CLASSES}EnvVarConfigProvider",
    }
    for name, value in params.items():
        provider, _, param = name.partition("_")
        defined[f"config.providers.{provider}.param.{param.replace('__', '.')}"] = value
    return defined


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    directory = tmp_path / "secrets"
    directory.mkdir()
    (directory / "broker.properties").write_text(f"keystore = {SECRET}\nport: 9093\n")
    (directory / "keystore").write_text(f"{SECRET}\n")
    (tmp_path / "elsewhere").write_text("keystore=other\n")
    (directory / "link").symlink_to(tmp_path / "elsewhere")
    return directory


def test_a_reference_is_replaced_by_what_its_provider_has(secrets: Path) -> None:
    providers = Providers(definitions(), {"PART": "x", "broker": "1"})

    resolved = providers.resolve(
        {
            "a": f"${{file:{secrets}/broker.properties:keystore}}",
            "b": f"${{dir:{secrets}:keystore}}",
            "c": f"before-${{env:PART}}-${{file:{secrets}/broker.properties:port}}-after",
            "d": "${nobody:/path:key} $1 ${plain}",
        }
    )

    assert resolved == {
        "a": SECRET,
        "b": f"{SECRET}\n",
        "c": "before-x-9093-after",
        "d": "${nobody:/path:key} $1 ${plain}",
    }


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("${env:A}${env:A}", "aa"),
        ("${env::A}", "a"),
        ("${env:A", "${env:A"),
        ("${env}:A}", "${env}:A}"),
        ("${ ${env:A}", "${ ${env:A}"),
        ("${x} ${env:A}", "${x} a"),
        ("$${env:A}}", "$a}"),
        ("}${env:A}{", "}a{"),
    ],
)
def test_references_are_found_as_kafkas_expression_finds_them(text: str, resolved: str) -> None:
    expression = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")

    assert Providers(definitions(), {"A": "a"}).resolve({"x": text}) == {"x": resolved}
    assert expression.sub(lambda match: "a" if match[1] == "env" else match[0], text) == resolved


@examples(300)
@given(st.text("${}:env A", max_size=40))
def test_any_text_is_resolved_as_kafkas_expression_would(text: str) -> None:
    expression = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")

    def value(match: re.Match[str]) -> str:
        return f"<{match[3] or ''}|{match[4]}>" if match[1] == "env" else match[0]

    providers = Providers({}, {})
    providers._lookups["env"] = lambda path, key: f"<{path}|{key}>"  # a provider that takes anything
    assert providers.resolve({"x": text})["x"] == expression.sub(value, text)


def test_a_long_text_without_an_end_takes_no_time() -> None:
    for text in ("${" * 500_000, "${" + ":" * 1_000_000, "${env:" * 200_000 + "}"):
        with contextlib.suppress(ConfigError):
            Providers(definitions(), {}).resolve({"x": text})


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConfigError, match="it is no file"):
        Providers(definitions(), {}).resolve({"x": f"${{file:{tmp_path}/pipe:key}}"})


def test_what_a_provider_gives_is_not_resolved_again(secrets: Path) -> None:
    providers = Providers(definitions(), {"A": "${env:B}", "B": "b"})

    assert providers.resolve({"a": "${env:A}"}) == {"a": "${env:B}"}


@pytest.mark.parametrize(
    ("reference", "params", "reason"),
    [
        ("${file:SECRETS/broker.properties:missing}", {}, "there is no such value"),
        ("${file:SECRETS/missing.properties:keystore}", {}, "cannot read"),
        ("${file:SECRETS:keystore}", {}, "cannot read"),
        ("${dir:SECRETS:missing}", {}, "there is no such value"),
        ("${dir:SECRETS:../elsewhere}", {}, "the name of a file"),
        ("${env:MISSING}", {}, "there is no such value"),
        ("${env:path:HERE}", {}, "has no path"),
        ("${env:HERE}", {"env_allowlist__pattern": "^KAFKA_"}, "there is no such value"),
        ("${file:SECRETS/../elsewhere:keystore}", {"file_allowed__paths": "SECRETS"}, "not allowed"),
        ("${file:SECRETS/link:keystore}", {"file_allowed__paths": "SECRETS"}, "not allowed"),
        ("${dir:SECRETS:link}", {"dir_allowed__paths": "SECRETS"}, "not allowed"),
        ("${file:relative:keystore}", {"file_allowed__paths": "SECRETS"}, "not allowed"),
    ],
)
def test_a_reference_that_leads_to_nothing_is_refused_by_its_setting(
    secrets: Path, reference: str, params: dict[str, str], reason: str
) -> None:
    params = {name: value.replace("SECRETS", str(secrets)) for name, value in params.items()}
    providers = Providers(definitions(**params), {"HERE": "value"})

    with pytest.raises(ConfigError, match=reason) as refused:
        providers.resolve({"ssl.keystore.password": reference.replace("SECRETS", str(secrets))})

    assert refused.value.name == "ssl.keystore.password"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"config.providers": "vault", "config.providers.vault.class": "com.example.Vault"}, "must be one of"),
        ({"config.providers": "file"}, "must be one of"),
        (definitions(file_allowed__paths="relative"), "should be absolute and exist"),
        (definitions(env_allowlist__pattern="("), "no regular expression"),
    ],
)
def test_a_provider_that_cannot_be_had_stops_the_start(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Providers(settings, {})


def test_settings_take_their_values_from_providers_and_show_references_only(secrets: Path, tmp_path: Path) -> None:
    reference = f"${{file:{secrets}/broker.properties:keystore}}"
    lines = [f"{name}={text}" for name, text in definitions().items()]
    file = tmp_path / "server.properties"
    file.write_text("\n".join([*lines, f"ssl.keystore.password={reference}", "num.io.threads=${env:IO}"]))

    loaded = load_config(file, [], {"IO": "3", "KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET": "${env:IO}"})

    assert loaded.unknown == []
    config = loaded.config
    assert config.num_io_threads == 3
    assert config.ssl_keystore_password is not None
    assert config.ssl_keystore_password.value == SECRET
    entries = {entry.name: entry for entry in describe_broker(config)}
    assert entries["num.io.threads"].value == "${env:IO}"
    assert entries["num.io.threads"].synonyms[0].value == "${env:IO}"
    assert SECRET not in repr(entries)


def test_providers_are_defined_by_the_environment_too() -> None:
    environ = {
        "KAFKA_CONFIG_PROVIDERS": "env",
        "KAFKA_CONFIG_PROVIDERS_ENV_CLASS": f"{CLASSES}EnvVarConfigProvider",
        "KAFKA_NUM_IO_THREADS": "${env:IO}",
        "IO": "5",
    }

    assert load_config(None, [], environ).config.num_io_threads == 5


def test_an_error_shows_the_reference_and_not_the_value() -> None:
    for name in ("num.io.threads", "log.cleanup.policy", "num.partitions"):
        overrides = [f"{key}={text}" for key, text in definitions().items()]
        value = "-98765" if name == "num.partitions" else SECRET
        with pytest.raises(ConfigError) as refused:
            load_config(None, [*overrides, f"{name}=${{env:IT}}"], {"IT": value})
        assert value not in str(refused.value)
        assert "${env:IT}" in str(refused.value)


def test_settings_that_are_given_by_program_are_taken_as_they_are() -> None:
    assert BrokerConfig({"sasl.jaas.config": "${env:IT}"}).value("sasl.jaas.config").value == "${env:IT}"
