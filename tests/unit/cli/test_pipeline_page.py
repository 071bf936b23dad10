"""docs/cli.md has every flag of the pipeline's commands."""

import argparse
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VERBS = sorted(path.stem for path in (ROOT / "cli" / "verbs").glob("pipeline_*.py"))


@pytest.mark.parametrize("verb", VERBS)
def test_each_flag_stands_beside_its_command(verb: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(f"kavka.cli.verbs.{verb}").add_arguments(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings} - {"--output"}
    name = verb.removeprefix("pipeline_")
    page = (ROOT / "docs" / "cli.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `kavka pipeline") and f"{name} " in line]
    assert rows
    assert [flag for flag in sorted(flags) if not any(flag in row for row in rows)] == []
