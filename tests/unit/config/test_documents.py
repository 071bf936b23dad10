from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kavka.config import BrokerConfig
from kavka.config.costly import costly_settings
from kavka.config.settings_doc import settings_page
from kavka.config.sources import load_config
from kavka.config.topic_settings import TopicSettings

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config" / "server.properties"
NOT_NEEDED_AT_START = ("zoneinfo", "ipaddress", "decimal", "asyncio", "dataclasses", "inspect", "logging")


def test_the_settings_page_is_current() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == settings_page(), (
        "run: python -m kavka.config.settings_doc > docs/settings.md"
    )


def test_every_row_says_what_it_is_for() -> None:
    for row in (*BrokerConfig.rows(), *TopicSettings.ROWS.values()):
        assert row.doc.endswith("."), row.name


def test_the_example_file_loads_and_every_setting_in_it_is_known_and_used() -> None:
    loaded = load_config(EXAMPLE, [], {})
    assert (loaded.unknown, loaded.without_effect) == ([], [])


def test_what_the_example_comments_out_is_the_default_where_it_says_so(tmp_path: Path) -> None:
    commented = [line[1:] for line in EXAMPLE.read_text().splitlines() if line.startswith("#") and line[1:2].islower()]
    settings = dict(line.split("=", 1) for line in commented)
    for name, text in settings.items():
        row = BrokerConfig.ALL_ROWS[name]
        row.parse(text)
        if name not in ("advertised.listeners", "metrics.port"):
            assert row.default_text == text, name


def test_thread_counts_made_for_the_jvm_are_pointed_out() -> None:
    adopted = BrokerConfig({"num.network.threads": "3", "num.io.threads": "8"})

    assert [warning.split("=")[0] for warning in costly_settings(adopted)] == ["num.network.threads", "num.io.threads"]
    assert costly_settings(BrokerConfig()) == []


def test_importing_and_loading_brings_in_no_heavy_module() -> None:
    code = (
        "import sys, kavka.config.sources; before = set(sys.modules)\n"
        f"kavka.config.sources.load_config({str(EXAMPLE)!r}, [], {{}})\n"
        "print(' '.join(m for m in sys.modules if not m.startswith('kavka')))"
    )
    bare = "import sys, pathlib; print(' '.join(sys.modules))"
    added = modules_after(code) - modules_after(bare)

    assert not added & set(NOT_NEEDED_AT_START)
    assert len(added) < 40, sorted(added)


def modules_after(code: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    return set(run.stdout.decode().split())
