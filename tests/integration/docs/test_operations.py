"""docs/operations.md: its commands print what it shows, its program runs, and its unit is one that systemd takes."""

import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from kavka.config.properties import parse_properties
from tests.support.console_blocks import ROOT, differing
from tests.support.running_broker import RunningBroker

PAGE = ROOT / "docs" / "operations.md"
UNIT = ROOT / "examples" / "systemd" / "kavka.service"
LOG_DIR = "/var/lib/kavka"
KEPT_SETTINGS = "## Settings that keep it from starting"
BROKER_ID = "7"
"""Of the Kafka that left the directory."""
TIMEOUT_S = 180


def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """On a directory that Kafka 3.9 has left; before the last ones it is served, and a setting changed."""
    with tarfile.open(ROOT / "tests" / "golden" / "kafka-3.9-log-dir.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    before, after = PAGE.read_text().split(KEPT_SETTINGS)
    found = differing(before, (LOG_DIR, tmp_path))
    with RunningBroker(tmp_path, {"broker.id": BROKER_ID}) as running:
        assert running.alter({"log.cleaner.threads": "2"}, BROKER_ID).error_code == 0
    found += differing(after, (LOG_DIR, tmp_path))
    assert not found, "\n\n".join(found)


def test_the_program_that_embeds_a_broker_runs() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert re.fullmatch(r"PLAINTEXT://127\.0\.0\.1:\d+\n", done.stdout), done.stderr


def test_the_unit_starts_a_broker_and_says_what_the_page_explains(tmp_path: Path) -> None:
    lines = UNIT.read_text().splitlines()
    (start,) = (line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart="))
    assert shlex.split(start)[1:] == ["broker", "/etc/kavka/server.properties"]
    explained = [name for name in _names_in_the_table() if not any(line.startswith(name) for line in lines)]
    assert explained == [], "the page explains lines that the unit does not have"

    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        # Where nothing is installed in /opt: the program must be there, and the user.
        text = UNIT.read_text().replace("/opt/kavka/.venv/bin/kavka", str(Path(sys.executable).with_name("kavka")))
        copy = tmp_path / "kavka.service"
        copy.write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))
        done = subprocess.run(
            [analyze, "verify", str(copy)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert (done.returncode, [line for line in done.stderr.splitlines() if "kavka" in line]) == (0, [])


def test_the_settings_that_the_page_makes_are_those_that_the_unit_asks_for(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    shutil.copyfile(ROOT / "config" / "server.properties", settings)
    (edit,) = re.findall(r"^(sed -i .*) /etc/kavka/server\.properties$", PAGE.read_text(), re.MULTILINE)
    subprocess.run([*shlex.split(edit), str(settings)], timeout=TIMEOUT_S, check=True)

    made = parse_properties(settings.read_bytes())
    unit = UNIT.read_text()
    assert f"\nStateDirectory={Path(made['log.dirs']).relative_to('/var/lib')}\n" in unit
    assert f" http://127.0.0.1:{made['metrics.port']}/readyz\n" in unit


def _names_in_the_table() -> Iterator[str]:
    (table,) = re.findall(r"^\| line \| why \|\n(.*?)\n\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for row in table.splitlines()[1:]:
        yield from re.findall(r"`([A-Za-z]+=)", row.split("|")[1])
