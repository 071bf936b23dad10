"""Each kind of listener in docs/security.md lets in the client that the page gives for it, and nobody without."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.kavka_process import SERVING
from tests.support.processes import Process, free_port

pytestmark = pytest.mark.soak
PAGE = Path(__file__).resolve().parents[3] / "docs" / "security.md"
TIMEOUT_S = 300.0
PORT = "9093"


def sections() -> dict[str, str]:
    """The page's parts by their titles."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(text: str, language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


def files(text: str) -> dict[str, str]:
    """The files that a part of the page gives whole, by their names."""
    named = {block.partition("\n")[0].removeprefix("# "): block for block in blocks(text, "properties")}
    return {name: block for name, block in named.items() if name.endswith(".properties")}


def run(command: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    return subprocess.run(
        command, cwd=directory, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    (script,) = blocks(sections()["Certificates"], "sh")
    done = run(["sh", "-e", "-c", script], directory)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.parametrize("title", [title for title, text in sections().items() if "server.properties" in files(text)])
def test_the_client_of_the_page_is_let_in_and_nobody_else(title: str, certificates: Path, tmp_path: Path) -> None:
    part, port = sections()[title], str(free_port())
    for path in certificates.iterdir():
        (tmp_path / path.name).symlink_to(path)
    for name, text in files(part).items():
        more = f"log.dirs={tmp_path / 'data'}\n" if name == "server.properties" else ""
        (tmp_path / name).write_text(text.replace(PORT, port) + more)
    (tmp_path / "nobody.properties").write_text("security.protocol=PLAINTEXT\n")
    for script in blocks(part, "sh"):
        done = run(["sh", "-e", "-c", script], tmp_path)
        assert done.returncode == 0, done.stderr
    broker = Process(
        ["sh", "-c", f"cd {tmp_path} && exec {Path(sys.executable).with_name('kavka')} broker server.properties"],
        tmp_path / "kavka.log",
    )
    try:
        broker.wait_for_log(SERVING, TIMEOUT_S)
        listed = [str(Path(sys.executable).with_name("kavka")), "topics", "list", "--bootstrap-server"]
        command = [*listed, f"localhost:{port}", "--command-config"]
        let_in = run([*command, "client.properties"], tmp_path)
        assert let_in.returncode == 0, let_in.stderr
        assert run([*command, "nobody.properties", "--timeout-ms", "3000"], tmp_path).returncode != 0
    finally:
        broker.stop()
