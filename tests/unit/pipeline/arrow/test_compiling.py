"""What was compiled is kept: a worker that starts later loads it, wherever the package is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kavka.pipeline.arrow.compiling import own_folder

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import small
assert small.doubled(21) == 42
print(sum(small.doubled.stats.cache_hits.values()), small.doubled._cache.cache_path)
"""
SMALL = """
from kavka.pipeline.arrow.compiling import compiled

@compiled
def doubled(number: int) -> int:
    return 2 * number
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """Calls a compiled function, and tells whether it was loaded, and from where."""
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "small.py").write_text(SMALL)
    return [sys.executable, "-c", PROGRAM.format(folder=str(folder))]


def run(program: list[str], **environment: str) -> tuple[str, Path]:
    text = subprocess.run(program, env=os.environ | environment, check=True, capture_output=True, text=True).stdout
    loaded, path = text.split()
    return loaded, Path(path)


def test_the_next_process_loads_what_one_compiled(program: list[str], tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(program, NUMBA_CACHE_DIR=cache)[0] == "0"
    loaded, path = run(program, NUMBA_CACHE_DIR=cache)
    assert loaded == "1"
    assert path.is_relative_to(cache)


def test_where_neither_package_nor_home_can_be_written_a_directory_of_ones_own_serves(
    program: list[str], tmp_path: Path
) -> None:
    # A file in the way keeps even root from making directories there.
    (tmp_path / "installed" / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    places = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    places["PYTHONDONTWRITEBYTECODE"] = "1"
    assert [run(program, **places)[0] for _ in range(2)] == ["0", "1"]
    own = tmp_path / f"kavka-compiled-{os.getuid()}"
    assert run(program, **places)[1].is_relative_to(own)
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_write_to_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = own_folder()
    assert folder is not None
    Path(folder).chmod(0o777)
    assert own_folder() is None
