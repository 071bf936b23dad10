"""References to secrets: what they stand for, and that a complaint never has it."""

import re
from pathlib import Path

import pytest

from kavka.pipeline.running.session import DEFAULTS
from kavka.pipeline.secret_references import SecretError, check_secret, references, resolved, resolved_settings


def test_references_stand_for_variables_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_NAME", "alice")
    secret = tmp_path / "password"
    secret.write_text("squirrel\n")
    text = f"username=${{env:USER_NAME}} password=${{file:{secret}}}"
    assert resolved(text) == "username=alice password=squirrel"
    assert resolved("no reference, $5, {x}") == "no reference, $5, {x}"
    assert list(references(text)) == ["${env:USER_NAME}", f"${{file:{secret}}}"]


def test_what_a_secret_holds_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "${env:INNER}")
    assert resolved("${env:OUTER}") == "${env:INNER}"


@pytest.mark.parametrize("text", ["${NAME}", "${var:NAME}", "${env:}", "${env:NAME", "${}", "${file:a${env:B}}"])
def test_what_only_looks_like_a_reference_is_refused(text: str) -> None:
    with pytest.raises(SecretError, match="is no reference"):
        resolved(text)


def test_what_is_not_there_is_named_by_its_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(SecretError, match=r"sasl\.jaas\.config: \$\{env:NOWHERE\}: there is no variable NOWHERE"):
        resolved_settings({"sasl.jaas.config": "${env:NOWHERE}"})
    with pytest.raises(SecretError, match="No such file"):
        resolved(f"${{file:{tmp_path}/none}}")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SecretError, match="no UTF-8"):
        resolved(f"${{file:{tmp_path}/binary}}")
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    with pytest.raises(SecretError, match="more than 65536 bytes"):
        resolved(f"${{file:{tmp_path}/large}}")


SECRETS = [
    ("sinks[0].catalog.s3.secret-access-key", "hunter2"),
    ("sinks[0].catalog.header.Authorization", "Bearer hunter2"),
    ("sinks[0].catalog.adls.account-key", "hunter2"),
    ("sinks[0].catalog.adls.connection-string", "AccountKey=hunter2"),
    ("spark.conf.spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "hunter2"),
    ("spark.conf.spark.hadoop.fs.gs.auth.service.account.private.key", "hunter2"),
]


@pytest.mark.parametrize(
    ("key", "value"), [*SECRETS, ("sinks[0].catalog.uri", "postgresql+psycopg2://lake:hunter2@db/catalog")]
)
def test_secrets_of_catalogs_and_file_systems_have_to_be_references(key: str, value: str) -> None:
    with pytest.raises(SecretError, match="a secret does not stand in a job file") as error:
        check_secret(key, value)
    assert "hunter2" not in str(error.value)
    check_secret(key, value.replace("hunter2", "${env:SECRET}"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sinks[0].key", "site"),
        ("sinks[0].catalog.uri", "sqlite:////srv/lake/catalog.db"),
        ("sinks[0].catalog.s3.access-key-id", "AKIA"),
        ("source.bootstrap.servers", "SASL_SSL://broker-1:9092,broker-2:9092"),
        ("spark.conf.spark.hadoop.fs.s3a.aws.credentials.provider", "com.example.Provider"),
        ("schema.registry.key_file", "key.pem"),
    ],
)
def test_what_is_no_secret_stands_as_it_is(key: str, value: str) -> None:
    check_secret(key, value)


@pytest.mark.parametrize(
    "key",
    [
        *(key for key, _ in SECRETS),
        *("ssl.key.password", "passwd", "ssl.passphrase", "credentials", "secret_key", "api-key", "sharedKey"),
        *("sasl.jaas.config", "ssl.keystore.key"),
    ],
)
def test_what_has_to_be_a_reference_is_hidden_by_spark_where_it_is_resolved(key: str) -> None:
    with pytest.raises(SecretError):
        check_secret(key, "org.example.Module required password=hunter2;")
    for name in ("spark.redaction.regex", "spark.sql.redaction.options.regex"):
        assert re.search(DEFAULTS[name], key), name
