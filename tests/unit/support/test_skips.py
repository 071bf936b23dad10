"""In CI a test that skips fails, unless CI cannot help it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run import outcomes

REPOSITORY = Path(__file__).resolve().parents[3]
TESTS = {
    "marked": "@pytest.mark.skip(reason='not today')\ndef test_it(): pass",
    "called": "def test_it(): pytest.skip('kcat is not installed')",
    "fixture": "@pytest.fixture\ndef client(): pytest.skip('no Go')\ndef test_it(client): pass",
    "module": "pytest.skip('nothing here', allow_module_level=True)",
    "allowed": "def test_it(): pytest.skip('a file system cannot be mounted here: permission denied')",
}


@pytest.mark.parametrize(("ci", "skipped"), [("", 5), ("true", 1)])
def test_only_what_ci_cannot_help_is_skipped_there(tmp_path: Path, ci: str, skipped: int) -> None:
    for kind, text in TESTS.items():
        (tmp_path / f"test_{kind}.py").write_text(f"import pytest\n{text}\n")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", f"--rootdir={tmp_path}", f"--junit-xml={report}"]
    env = {**os.environ, "CI": ci, "PYTEST_ADDOPTS": ""}
    command += ["--continue-on-collection-errors", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)

    counts = outcomes(report.read_text())

    assert counts["skipped"] == skipped, done.stdout
    assert counts["failed"] + counts["error"] == len(TESTS) - skipped, done.stdout
    assert done.stdout.count("CI must not skip it") >= len(TESTS) - skipped, done.stdout
