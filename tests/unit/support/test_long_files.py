"""Long files begin first, however few tests they have."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.long_files import SECONDS

REPOSITORY = Path(__file__).resolve().parents[3]
TEST = "import pytest\n@pytest.mark.parametrize('number', range({count}))\ndef test_it(number): pass\n"


def test_every_long_file_is_there() -> None:
    assert [path for path in SECONDS if not (REPOSITORY / path).is_file()] == []


def test_workers_begin_with_the_longest_files(tmp_path: Path) -> None:
    longest, *_, long = sorted(SECONDS, key=lambda path: -SECONDS[path])
    in_order = [longest, long, "tests/integration/test_some.py", "tests/component/test_some.py", "tests/unit/test_a.py"]
    for count, path in enumerate(in_order, 1):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(TEST.format(count=count))
    command = [sys.executable, "-m", "tests.run", "--workers", "1", "-vv", "-p", "tests.conftest"]
    command += [f"--rootdir={tmp_path}", "--import-mode=importlib", str(tmp_path / "tests")]
    env = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)

    passed = [line.partition("::")[0] for line in done.stdout.splitlines() if " PASSED " in line]
    begun = [path.rpartition(f"{tmp_path.name}/")[2] for path in passed]

    assert list(dict.fromkeys(begun)) == in_order, done.stdout
