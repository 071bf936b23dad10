"""Commands on a page of docs/, with what the page says they print.

A block of the language `console` has commands behind `$ ` and below each its output.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 400
BROKEN_TO_FIT = "kavka storage dump "
"""The page may break the lines of these commands."""
VOLATILE = (
    (re.compile(r"(?<=cluster\.id=)\S+"), "..."),
    # A transaction's marker bears the time at which it was written.
    (re.compile(r"(isControl: true .*?CreateTime: )\d+(.*?crc: )\d+"), r"\1...\2..."),
    (re.compile(r"(CreateTime: )\d+( (?:(?!CreateTime).)*endTxnMarker)"), r"\1...\2"),
)


def differing(text: str, log_dir: tuple[str, Path], env: Mapping[str, str] | None = None) -> list[str]:
    """What the commands in `text` print instead of what is shown, one entry each; none if all is as shown.

    `log_dir`: as the page names it, and where it is. The commands run in the repository's folder.
    """
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    steps = [step for block in blocks for step in _steps(block)]
    assert steps, "no commands on the page"
    found = []
    for command, shown in steps:
        printed = _output(command, log_dir, env or {})
        if _comparable(command, printed) != _comparable(command, shown):
            found.append(f"$ {command}\nprints\n{printed}\ninstead of\n{shown}")
    return found


def _steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block, with what is shown below each."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", "a block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _output(command: str, log_dir: tuple[str, Path], env: Mapping[str, str]) -> str:
    named, actual = log_dir
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command.replace(named, str(actual))],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
        text=True,
    )
    return done.stdout.replace(str(actual), named)


def _comparable(command: str, output: str) -> list[str]:
    if command.startswith(BROKEN_TO_FIT):
        output = " ".join(output.split())
    for pattern, mask in VOLATILE:
        output = pattern.sub(mask, output)
    return output.splitlines()
