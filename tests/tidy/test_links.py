"""Links from one page to another lead somewhere: the file is there, and so is the heading."""

import re
from pathlib import Path

from tests.tidy.sources import own_files, relative

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken = []
    for page in own_files():
        if page.suffix != ".md":
            continue
        for target in LINK.findall(BLOCK.sub("", page.read_text())):
            if ":" in target:
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            if not linked.exists() or (anchor and anchor not in _anchors(linked)):
                broken.append(f"{relative(page)}: {target}")
    assert broken == [], "\n".join(broken)


def _anchors(page: Path) -> set[str]:
    """The headings' names, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
