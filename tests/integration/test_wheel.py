"""What `pip install kavka` brings: everything under `kavka` and nothing beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
USER_CODE = """
import client, config, testing
assert (client.OWNER, config.OWNER, testing.OWNER) == ("user", "user", "user")
import kavka.broker.server, kavka.cli.main, kavka.config
assert kavka.__file__.startswith({target!r}), kavka.__file__
assert kavka.config.__file__.startswith({target!r})
raise SystemExit(kavka.cli.main.main(["broker", "--help"]))
"""


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    arguments = list(map(str, command))
    done = subprocess.run(arguments, cwd=cwd, env=env or None, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as an installer without a wheel would."""
    folder = tmp_path_factory.mktemp("wheel")
    backend = "from setuptools import build_meta; print(build_meta.build_sdist({!r}))"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    tools = folder / "tools"
    run(*pip, "install", "-q", "--target", tools, "setuptools>=68", "wheel", cwd=folder)
    built = run(
        sys.executable, "-c", backend.format(str(folder)), cwd=REPOSITORY, PYTHONPATH=str(tools), PATH="/usr/bin:/bin"
    )
    sdist = folder / built.stdout.splitlines()[-1]
    run(*pip, "wheel", "-q", "--no-deps", "-w", folder, sdist, cwd=folder)
    return next(folder.glob("kavka-*.whl"))


@pytest.mark.slow
def test_a_wheel_holds_all_rooms_and_nothing_at_the_top_but_kavka(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].partition("-")[0] for name in names} == {"kavka"}
    rooms = {path.name for path in (REPOSITORY / "kavka").iterdir() if path.is_symlink()}
    shipped = {name.split("/")[1] for name in names if name.count("/") > 1 and name.endswith(".py")}
    assert rooms <= shipped
    modules = {str(path.relative_to(REPOSITORY)) for room in rooms for path in (REPOSITORY / room).rglob("*.py")}
    assert {f"kavka/{module}" for module in modules} <= set(names)
    assert "kavka/config/server.properties" in names


@pytest.mark.slow
def test_it_lives_beside_a_project_with_modules_of_the_same_names(wheel: Path, tmp_path: Path) -> None:
    target, project = tmp_path / "site", tmp_path / "project"
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel, cwd=tmp_path)
    (project / "client").mkdir(parents=True)
    for name in ("client/__init__.py", "config.py", "testing.py"):
        (project / name).write_text('OWNER = "user"\n')

    shown = run(sys.executable, "-c", USER_CODE.format(target=str(target)), cwd=project, PYTHONPATH=str(target))

    assert "server.properties" in shown.stdout
