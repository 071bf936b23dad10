"""References to secrets: what they stand for, and that a complaint never has it."""

from pathlib import Path

import pytest

from kavka.pipeline.secret_references import SecretError, references, resolved, resolved_settings


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
