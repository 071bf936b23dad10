"""docs/tour.md, step by step against a broker of its own: every command prints what the page says it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.kavka_process import KavkaProcess

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "tour.md"
SETTINGS = "examples/tour/server.properties"
LOG_DIR = "/tmp/kavka-tour"
LAST_STEP = "## 7. The broker stops"
TIMEOUT_S = 120
BROKEN_TO_FIT = "kavka storage dump "
"""The page may break the lines of these commands."""
VOLATILE = (
    (re.compile(r"(?<=cluster\.id=)\S+"), "..."),
    # The marker bears the time at which it was written.
    (re.compile(r"(isControl: true .*?CreateTime: )\d+(.*?crc: )\d+"), r"\1...\2..."),
    (re.compile(r"(CreateTime: )\d+( (?:(?!CreateTime).)*endTxnMarker)"), r"\1...\2"),
)


class TourBroker(KavkaProcess):
    """The broker that the page tells the reader to start, on another port and in another directory."""

    def command(self) -> list[str]:
        command = super().command()
        start = command.index("broker") + 1
        return [*command[:start], str(ROOT / SETTINGS), *command[start:]]


def test_every_step_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert f"\nkavka broker {SETTINGS}\n" in page
    assert f"\nlog.dirs={LOG_DIR}\n" in (ROOT / SETTINGS).read_text()
    while_it_runs, after_its_stop = page.split(LAST_STEP)
    with TourBroker(tmp_path) as broker:
        differing = _differing(while_it_runs, broker)
    differing += _differing(after_its_stop, broker)
    assert not differing, "\n\n".join(differing)


def test_every_program_of_the_tour_is_on_the_page() -> None:
    page = PAGE.read_text()
    programs = {path.stem for path in (ROOT / "examples" / "tour").glob("*.py")} - {"connection"}
    assert {name for name in programs if f"$ python -m examples.tour.{name}" in page} == programs


def _differing(text: str, broker: KavkaProcess) -> list[str]:
    steps = [
        step
        for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for step in _steps(block)
    ]
    assert steps
    differing = []
    for command, shown in steps:
        printed = _output(command, broker)
        if _comparable(command, printed) != _comparable(command, shown):
            differing.append(f"$ {command}\nprints\n{printed}\ninstead of\n{shown}")
    return differing


def _steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block, with what is shown below each."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", "a block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _output(command: str, broker: KavkaProcess) -> str:
    """What a shell prints in the repository's folder, where the page's broker and LOG_DIR are those of `broker`."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TOUR_BROKER": broker.bootstrap,
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["sh", "-c", command.replace(LOG_DIR, str(broker.log_dir))],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
        text=True,
    )
    return done.stdout.replace(str(broker.log_dir), LOG_DIR)


def _comparable(command: str, output: str) -> list[str]:
    if command.startswith(BROKEN_TO_FIT):
        output = " ".join(output.split())
    for pattern, mask in VOLATILE:
        output = pattern.sub(mask, output)
    return output.splitlines()
