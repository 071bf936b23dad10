"""The `kavka` command: finding verbs, exit codes, and what it costs to start."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kavka import __version__
from kavka.cli.main import main
from kavka.cli.tree import commands, help_of, verb_of
from kavka.cli.verbs import broker


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kavka {__version__}\n"


def test_every_verb_file_is_a_command_with_a_help_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    tree = commands()
    assert {("broker",), ("storage", "dump"), ("topics", "list")} <= {command.words for command in tree}
    for command in tree:
        assert main([*command.words, "--help"]) == 0
        shown = capsys.readouterr().out
        line = " ".join(("kavka", *command.words))
        assert shown.startswith(f"usage: {line} ")
        assert f"\nexample:\n  {line}" in shown
        assert help_of(command) == verb_of(command).HELP


def test_the_help_above_the_verbs_tells_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "run a broker" in capsys.readouterr().out
    assert main(["topics", "--help"]) == 0
    assert "list the topics' names" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "kavka: the following arguments are required: COMMAND; see kavka --help"),
        (["storage"], "kavka storage: the following arguments are required: COMMAND; see kavka storage --help"),
        (["nothing"], "kavka: argument COMMAND: invalid choice: 'nothing' (choose from"),
        (["storage", "nothing"], "kavka storage: argument COMMAND: invalid choice: 'nothing' (choose from"),
        (["storage", "dump"], "kavka storage dump: the following arguments are required: FILE; see"),
        (["topics", "list", "--topics"], "kavka topics list: unrecognized arguments: --topics; see"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_broker_takes_a_file_and_overrides_in_order() -> None:
    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    args = parser.parse_args(["server.properties", "--override", "a=1", "--override", "b=2=3"])
    assert args.config == "server.properties"
    assert args.override == ["a=1", "b=2=3"]


@pytest.mark.parametrize("arguments", [["--help"], ["topics", "--help"], ["topics", "list", "--help"]])
def test_a_help_is_shown_without_the_rooms_and_without_another_verb(arguments: list[str]) -> None:
    code = (
        f"import sys; from kavka.cli.main import main; main({arguments!r});"
        "print(*sorted(m for m in sys.modules if m.startswith('kavka.')), file=sys.stderr)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert [name for name in loaded if not name.startswith("kavka.cli")] == []
    verbs = [name for name in loaded if name.startswith("kavka.cli.verbs.")]
    assert verbs == (["kavka.cli.verbs.topics_list"] if "list" in arguments else [])


def test_a_reader_who_leaves_is_no_error(tmp_path: Path) -> None:
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("x\n" * 200_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "kavka", "storage", "dump", str(checkpoint)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == f"Dumping {checkpoint}\n"
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors == ""


@pytest.mark.parametrize("arguments", [["storage", "dump", "{file}"], ["storage", "info", "--log-dirs", "{folder}"]])
def test_an_output_that_cannot_be_written_is_said_on_one_line(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "recovery-point-offset-checkpoint"
    file.write_text("0\n0\n")
    given = [each.format(file=file, folder=tmp_path) for each in arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kavka", *given], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == "kavka: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["storage", "info", "--help"]])
def test_a_version_or_a_help_that_cannot_be_written_is_a_failure(
    arguments: list[str], buffering: dict[str, str]
) -> None:
    buffered = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kavka", *arguments],
            env=buffered | buffering,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "kavka: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", [["storage", "info", "--log-dirs", "."], ["--version"], ["storage", "--help"]])
def test_a_closed_output_is_said_on_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "kavka", *arguments]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, check=False)

    assert done.stderr == "kavka: the output cannot be written: Bad file descriptor\n"
    assert done.returncode == 1


@pytest.mark.parametrize("verb", [["broker"], ["storage", "info"]])
def test_another_system_than_linux_is_refused_before_anything_is_imported(verb: list[str]) -> None:
    code = (
        "import sys; sys.platform = 'darwin'; from kavka.cli.main import main;"
        f"code = main({verb!r}); rooms = ('kavka.broker', 'kavka.config', 'kavka.storage');"
        "print(code, [name for name in sys.modules if name.startswith(rooms)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"
    assert done.stderr.startswith("kavka: Linux is required, and this is darwin")
    assert len(done.stderr.splitlines()) == 1


INTERRUPTED_AT = """
import _signal, os, sys

interrupted_at, disposition, sys.argv[1:] = sys.argv[1], sys.argv[2], ["broker", "no/such.properties"]
# Whoever runs the tests in the background may ignore it.
_signal.signal(_signal.SIGINT, _signal.SIG_IGN if disposition == "ignored" else _signal.default_int_handler)
sys.modules.pop(interrupted_at, None)  # what else is installed may have had it imported already

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted_at:
            for _ in range(2):
                os.kill(os.getpid(), 2)

sys.meta_path.insert(0, Interrupting())
import kavka.__main__
"""


@pytest.mark.parametrize(
    "module",
    ["signal", "kavka.cli.main", "typing", "argparse", "kavka.cli.verbs.broker", "kavka.broker.main"],
)
def test_an_interruption_while_the_command_loads_is_quiet(module: str) -> None:
    """Two at once, as `timeout` sends them: to the process and then to its group."""
    command = [sys.executable, "-c", INTERRUPTED_AT, module, "default"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


def test_an_interruption_that_is_ignored_stays_ignored() -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT, "argparse", "ignored"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "no/such.properties" in done.stderr
