"""The plugin costs a project that does not use it nothing, and can be loaded where brokers cannot run."""

import subprocess
import sys

LOADED = """
import pytest, sys
before = set(sys.modules)
import kavka.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
ELSEWHERE = """
import pytest, sys
# Before the standard library, which pytest loads, takes the platform for true.
for name in ("uvloop", "fcntl", "resource", "kavka.broker"):
    sys.modules[name] = None
sys.platform = {platform!r}
import kavka.testing.plugin
for name in ("Broker", "Cluster"):
    try:
        getattr(kavka.testing, name)
    except kavka.testing.LinuxRequiredError as error:
        print(error)
print(kavka.testing.Row("value").value)
"""


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_plugin_imports_pytest_and_no_room_but_its_own() -> None:
    (loaded,) = run(LOADED)
    assert [name for name in loaded.split() if name.partition(".")[0] == "kavka"] == [
        "kavka",
        "kavka.testing",
        "kavka.testing.errors",
        "kavka.testing.plugin",
    ]


def test_elsewhere_than_on_linux_it_says_so_in_one_line_when_a_broker_is_wanted() -> None:
    for platform in ("win32", "darwin"):
        lines = run(ELSEWHERE.format(platform=platform))
        assert len(lines) == 3
        assert lines[0] == lines[1]
        assert "needs Linux" in lines[0]
        assert platform in lines[0]
        assert lines[2] == "value"
