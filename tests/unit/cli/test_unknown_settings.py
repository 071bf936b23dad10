"""Settings that nobody knows, in files and flags: a line on standard error, and the command goes on."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main


def test_a_misspelt_setting_is_said_with_the_one_that_was_meant(
    admin: MagicMock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.list_topics.return_value = {}
    file = tmp_path / "client.properties"
    # The second is a consumer's, the third of TLS, the fourth of the producer of 0.8.
    file.write_text("request.timeout.mss=5\nisolation.level=none\nssl.protocol=x\nproducer.type=sync\nzzz=1\n")
    assert main(["topics", "list", "--command-config", str(file)]) == 0
    unknown = f"kavka: --command-config {file}: no client has a setting"
    assert capsys.readouterr().err.splitlines() == [
        f"{unknown} 'request.timeout.mss'; did you mean request.timeout.ms?",
        f"{unknown} 'zzz'",
    ]
    assert admin.settings["request.timeout.mss"] == "5"


def test_a_profiles_settings_are_looked_at_too(
    admin: MagicMock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.list_topics.return_value = {}
    folder = tmp_path / "kavka"
    folder.mkdir()
    (folder / "config.toml").write_text('[profiles.test]\nbootstrap.server = "one:9092"\nclient.id = "me"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["topics", "list", "--profile", "test"]) == 0
    assert capsys.readouterr().err == (
        f"kavka: {folder}/config.toml, profile test: no client has a setting 'bootstrap.server'; "
        "did you mean bootstrap.servers?\n"
    )


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("consume orders --consumer-property", "--consumer-property"),
        ("produce orders --file /dev/null --producer-property", "--producer-property"),
        ("perf consume --topic orders --num-records 1 --command-property", "--command-property"),
    ],
)
def test_flags_settings_are_looked_at_before_a_broker_is(
    words: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def looked(_settings: object, _timeout_ms: object) -> None:
        raise OSError(None, "nobody listens")

    monkeypatch.setattr("kavka.cli.reaching.await_broker", looked)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    assert main([*words.split(), "client.ids=me"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"kavka: {flag}: no client has a setting 'client.ids'; did you mean client.id?"
    assert len(said) == 2
