"""The demo's picture: well-formed, to scale, and safe with what comes from outside."""

from xml.etree import ElementTree

import pytest

from examples.page_visits.picture import Picture, page

COUNTS = [
    {"site": "a", "window_start": "2026-01-01T08:00:00.000Z", "visits": 30},
    {"site": "b", "window_start": "2026-01-01T08:00:00.000Z", "visits": 10},
    {"site": "a", "window_start": "2026-01-01T09:00:00.000Z", "visits": 20},
]


def drawings(text: str) -> list[ElementTree.Element]:
    """The SVGs of a page."""
    found = [part.partition("</svg>")[0] for part in text.split("<svg")[1:]]
    return [ElementTree.fromstring(f"<svg{each}</svg>") for each in found]


def test_bars_are_as_high_as_their_counts() -> None:
    bars, _, _ = drawings(page(Picture(COUNTS, [(0.0, 5, 0), (1.0, 0, 2)])))
    heights = [float(each.attrib["height"]) for each in bars.iter("rect")]
    first = heights[0]
    assert heights == pytest.approx([first, first / 3, first * 2 / 3, 0.0], abs=0.2)
    assert {each.text for each in bars.iter("text")} >= {"08:00", "09:00", "0", "40"}


def test_a_line_goes_from_look_to_look() -> None:
    _, lag, late = drawings(page(Picture(COUNTS, [(0.0, 50_000, 0), (10.0, 0, 7)])))
    assert "50,000" in {each.text for each in lag.iter("text")}
    assert len(next(iter(late.iter("polyline"))).attrib["points"].split()) == 4


def test_names_from_topics_are_text() -> None:
    text = page(Picture([{"site": "<script>", "window_start": "x", "visits": 1}], []))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_nothing_to_draw_is_a_picture_too() -> None:
    assert len(drawings(page(Picture([], [])))) == 3
