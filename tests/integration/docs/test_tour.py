"""docs/tour.md, step by step against a broker of its own: every command prints what the page says it prints."""

from pathlib import Path

from tests.support.console_blocks import ROOT, differing
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until

PAGE = ROOT / "docs" / "tour.md"
SETTINGS = "examples/tour/server.properties"
LOG_DIR = "/tmp/kavka-tour"
LAST_STEP = "## 7. The broker stops"


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
        found = differing(while_it_runs, (LOG_DIR, broker.log_dir), {"TOUR_BROKER": broker.bootstrap})
        # What was compacted is read a moment before the cleaner has noted it.
        wait_until((broker.log_dir / "cleaner-offset-checkpoint").exists, 400, "compaction was not noted")
    found += differing(after_its_stop, (LOG_DIR, broker.log_dir))
    assert not found, "\n\n".join(found)


def test_every_program_of_the_tour_is_on_the_page() -> None:
    page = PAGE.read_text()
    programs = {path.stem for path in (ROOT / "examples" / "tour").glob("*.py")} - {"connection"}
    assert {name for name in programs if f"$ python -m examples.tour.{name}" in page} == programs
